import { seededRandom } from '../../src/testing/sources.js';

export type Chance = ReturnType<typeof createChance>;

/** The random numbers of a run. The same seed creates the same run. */
export const createChance = (seed: number) => {
  const next = seededRandom(seed);
  /** From 0 up to 1. */
  const random = (): number => next() / 2 ** 32;
  const between = (least: number, most: number): number => least + random() * (most - least);
  return {
    random,
    between,
    /** A whole number, less than `most`. */
    whole: (least: number, most: number): number => Math.floor(between(least, most)),
    oneOf: <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!,
    isTrue: (probability: number): boolean => random() < probability,
    /** One of the values, each as often as its share of all says. */
    oneByShare: <T>(values: readonly (readonly [share: number, value: T])[]): T => {
      let left = random() * values.reduce((sum, [share]) => sum + share, 0);
      return (values.find(([share]) => (left -= share) < 0) ?? values.at(-1)!)[1];
    },
  };
};
