import { seededRandom } from '../../../src/testing/sources.js';

/** Random numbers of a run. The same seed creates the same run. */
export interface Chance {
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly between: (least: number, most: number) => number;
  readonly oneOf: <T>(values: readonly T[]) => T;
  readonly isTrue: (probability: number) => boolean;
}

/** Creates the random numbers of a seed. */
export const createChance = (seed: number): Chance => {
  const next = seededRandom(seed);
  const random = () => next() / 2 ** 32;
  return {
    random,
    between: (least, most) => least + random() * (most - least),
    oneOf: (values) => values[Math.floor(random() * values.length)]!,
    isTrue: (probability) => random() < probability,
  };
};
