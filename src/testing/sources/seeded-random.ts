/** Gives the next number of a sequence: a whole number from 0 to 2^32-1. */
export type Random = () => number;

/** Makes a sequence of random numbers that is the same for the same seed (mulberry32). Not for secrets. */
export const seededRandom = (seed: number): Random => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
};

/** Gives a whole number from 0 to below a bound. */
export const below = (random: Random, bound: number): number => Math.floor((random() / 2 ** 32) * bound);

/** Gives `0x` and as many random bytes in hex; a multiple of 4. */
export const hexBytes = (random: Random, bytes: number): string => {
  let hex = '0x';
  for (let written = 0; written < bytes; written += 4) hex += random().toString(16).padStart(8, '0');
  return hex;
};

/** Makes a number of values, to pick from later: what a source does at 50 000 frames a second it must not make anew. */
export const poolOf = <T>(size: number, make: () => T): readonly T[] => Array.from({ length: size }, make);

/** Makes a maker of hashes: 4 bytes are fresh, the others come from two pools, which makes 2^52 of them. */
export const hashMaker = (random: Random): (() => string) => {
  const heads = poolOf(1_024, () => hexBytes(random, 12));
  const tails = poolOf(1_024, () => hexBytes(random, 16).slice(2));
  return () => pick(random, heads) + random().toString(16).padStart(8, '0') + pick(random, tails);
};

/** Gives one of some values. */
export const pick = <T>(random: Random, values: readonly T[]): T => values[below(random, values.length)] as T;
