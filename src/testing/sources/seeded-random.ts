/** Returns the next number of a sequence: a whole number from 0 to 2^32-1. */
export type Random = () => number;

/** Creates a sequence of random numbers (mulberry32). The same seed creates the same sequence. Not for secrets. */
export const seededRandom = (seed: number): Random => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
};

/** Returns a whole number from 0 to `bound - 1`. */
export const below = (random: Random, bound: number): number => Math.floor((random() / 2 ** 32) * bound);

/** Returns `0x` and `bytes` random bytes in hex. `bytes` must be a multiple of 4. */
export const hexBytes = (random: Random, bytes: number): string => {
  let hex = '0x';
  for (let written = 0; written < bytes; written += 4) hex += random().toString(16).padStart(8, '0');
  return hex;
};

/** Creates values in advance, to pick from later: at 50 000 frames per second, creating each value again costs too much. */
export const poolOf = <T>(size: number, create: () => T): readonly T[] => Array.from({ length: size }, create);

/** Creates a function that returns hashes. 4 bytes of a hash are random; the other 28 are from two pools of 1 024 values. So there are 2^52 hashes. */
export const hashFactory = (random: Random): (() => string) => {
  const heads = poolOf(1_024, () => hexBytes(random, 12));
  const tails = poolOf(1_024, () => hexBytes(random, 16).slice(2));
  return () => pick(random, heads) + random().toString(16).padStart(8, '0') + pick(random, tails);
};

/** Returns one of the values. */
export const pick = <T>(random: Random, values: readonly T[]): T => values[below(random, values.length)] as T;
