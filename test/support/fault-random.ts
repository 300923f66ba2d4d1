import { seededRandom as seededWords } from '../../src/testing/sources/seeded-random.js';
import type { Faults } from './fault-connection.js';
import type { Cut, Flow } from './fault-flow.js';

/** Creates a generator of numbers from 0 up to 1. The same seed returns the same numbers. */
export const seededRandom = (seed: number): (() => number) => {
  const next = seededWords(seed);
  return () => next() / 2 ** 32;
};

/** Draws the faults of one connection: none in two of five cases, otherwise one or two of any kind. */
export const randomFaults = (random: () => number): Faults => {
  if (random() < 0.4) return {};
  return random() < 0.5 ? oneFault(random) : merged(oneFault(random), oneFault(random));
};

const merged = (one: Faults, other: Faults): Faults => ({
  ...one,
  ...other,
  toClient: { ...one.toClient, ...other.toClient },
  toServer: { ...one.toServer, ...other.toServer },
});

const oneFault = (random: () => number): Faults => {
  const kind = random();
  if (kind < 0.08) return { refuse: true };
  if (kind < 0.16) return { connectAfter: 'next' };
  // The service answers a request that FIN cuts off with 400: that is an answer, not a network fault.
  return random() < 0.7
    ? { toClient: oneFlow(random, ['reset', 'end', 'half-open']) }
    : { toServer: oneFlow(random, ['reset', 'half-open']) };
};

const oneFlow = (random: () => number, kinds: readonly Cut['how'][]): Flow => {
  const kind = random();
  if (kind < 0.2) return { delayMs: below(random, 60), jitterMs: below(random, 40) };
  if (kind < 0.3) return { bytesPerSecond: between(random, 2_000, 2_000_000) };
  if (kind < 0.45) return { segments: 'split' };
  if (kind < 0.55) return { segments: 'coalesced' };
  if (kind < 0.6) return { segments: 'drip' };
  return { cut: { afterBytes: between(random, 1, 100_000) - 1, how: pick(random, kinds) } };
};

const below = (random: () => number, bound: number): number => Math.floor(random() * bound);

const pick = <T>(random: () => number, values: readonly T[]): T => values[below(random, values.length)] as T;

// Every order of magnitude has the same probability.
const between = (random: () => number, low: number, high: number): number => Math.round(low * (high / low) ** random());
