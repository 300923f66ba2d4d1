import { seededRandom as words } from '../../src/testing/sources/seeded-random.js';
import type { Faults } from './fault-connection.js';
import type { Cut, Flow } from './fault-flow.js';

/** Makes numbers from 0 up to 1 that are the same for the same seed. */
export const seededRandom = (seed: number): (() => number) => {
  const next = words(seed);
  return () => next() / 2 ** 32;
};

/** Draws what becomes of one connection: nothing in two of five, else up to two faults, of any kind and measure. */
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
  // A request that is cut off by an end is answered with 400, which is an answer and no fault of the network.
  return random() < 0.7
    ? { toClient: oneFlow(random, ['reset', 'end', 'half-open']) }
    : { toServer: oneFlow(random, ['reset', 'half-open']) };
};

const oneFlow = (random: () => number, hows: readonly Cut['how'][]): Flow => {
  const kind = random();
  if (kind < 0.2) return { delayMs: below(random, 60), jitterMs: below(random, 40) };
  if (kind < 0.3) return { bytesPerSecond: between(random, 2_000, 2_000_000) };
  if (kind < 0.45) return { segments: 'split' };
  if (kind < 0.55) return { segments: 'coalesced' };
  if (kind < 0.6) return { segments: 'drip' };
  return { cut: { afterBytes: between(random, 1, 100_000) - 1, how: pick(random, hows) } };
};

const below = (random: () => number, bound: number): number => Math.floor(random() * bound);

const pick = <T>(random: () => number, values: readonly T[]): T => values[below(random, values.length)] as T;

// Each order of magnitude is as likely as another.
const between = (random: () => number, low: number, high: number): number => Math.round(low * (high / low) ** random());
