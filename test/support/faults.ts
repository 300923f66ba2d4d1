import { seededRandom as seededWords } from '../../src/testing/sources.js';

/** The faults of one direction of a connection. */
export interface Flow {
  /** Delays each chunk by this time, plus up to `jitterMs`. Chunks stay in order. */
  readonly delayMs?: number;
  readonly jitterMs?: number;
  readonly bytesPerSecond?: number;
  /** `split`: random small pieces; `drip`: one byte at a time. */
  readonly segments?: 'as-is' | 'split' | 'drip';
  readonly cut?: Cut;
}

/** Ends a connection after a number of bytes: with RST, with FIN, or by discarding everything in both directions. */
export interface Cut {
  readonly afterBytes: number;
  readonly how: 'reset' | 'end' | 'half-open';
}

/** The faults of one connection. If there are none, all bytes are forwarded at once. */
export interface Faults {
  readonly toClient?: Flow;
  readonly toServer?: Flow;
  /** Closes the connection at once, with RST. */
  readonly refuse?: boolean;
}

/** Creates a generator of numbers from 0 up to 1. The same seed returns the same numbers. */
export const seededRandom = (seed: number): (() => number) => {
  const next = seededWords(seed);
  return () => next() / 2 ** 32;
};

/**
 * Draws the faults of one connection: none in two of five cases, otherwise one or two of any kind. No bandwidth is below
 * `leastBytesPerSecond`.
 */
export const randomFaults = (random: () => number, leastBytesPerSecond = 0): Faults => {
  if (random() < 0.4) return {};
  const one = () => oneFault(random, leastBytesPerSecond);
  return random() < 0.5 ? one() : merged(one(), one());
};

const merged = (one: Faults, other: Faults): Faults => ({
  ...one,
  ...other,
  toClient: { ...one.toClient, ...other.toClient },
  toServer: { ...one.toServer, ...other.toServer },
});

const oneFault = (random: () => number, leastBytesPerSecond: number): Faults => {
  const flow = (...cuts: readonly Cut['how'][]) => oneFlow(random, leastBytesPerSecond, cuts);
  const kind = random();
  if (kind < 0.08) return { refuse: true };
  // The service answers a request that FIN cuts off with 400, which is an answer rather than a network fault.
  return random() < 0.7 ? { toClient: flow('reset', 'end', 'half-open') } : { toServer: flow('reset', 'half-open') };
};

const oneFlow = (random: () => number, leastBytesPerSecond: number, kinds: readonly Cut['how'][]): Flow => {
  const kind = random();
  if (kind < 0.2) return { delayMs: below(random, 60), jitterMs: below(random, 40) };
  if (kind < 0.3) return { bytesPerSecond: Math.max(leastBytesPerSecond, between(random, 2_000, 2_000_000)) };
  if (kind < 0.55) return { segments: 'split' };
  if (kind < 0.6) return { segments: 'drip' };
  return { cut: { afterBytes: between(random, 1, 100_000) - 1, how: pick(random, kinds) } };
};

const below = (random: () => number, bound: number): number => Math.floor(random() * bound);

export const pick = <T>(random: () => number, values: readonly T[]): T => values[below(random, values.length)] as T;

// All orders of magnitude are equally likely.
const between = (random: () => number, low: number, high: number): number => Math.round(low * (high / low) ** random());
