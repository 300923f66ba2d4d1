import { describe, expect, it } from '@jest/globals';
import { reliabilityModule } from './library.js';

type Times = readonly number[];
const waves = await reliabilityModule<{
  largestWithin: (times: Times, widthMs: number) => number;
  distance: (some: Times, others: Times) => number;
  distanceByChance: (count: number) => number;
  histogram: (times: Times, bins: { fromMs?: number; toMs?: number; widthMs: number }) => readonly [number, number][];
}>('lib/waves.mjs');
const { seeded } = await reliabilityModule<{ seeded: (seed: number) => () => number }>('lib/random.mjs');

const drawn = (count: number, seed: number): Times => {
  const random = seeded(seed);
  return Array.from({ length: count }, () => random() * 1_000);
};

describe('the largest wave', () => {
  it('is found at any position', () => {
    expect(waves.largestWithin([0, 45, 49, 51, 95, 99, 300], 50)).toBe(4);
    expect(waves.largestWithin([7, 7, 7], 0)).toBe(3);
    expect(waves.largestWithin([], 50)).toBe(0);
  });
});

describe('the distance', () => {
  it('is 0 for equal samples, 1 for separate samples, and symmetric', () => {
    expect(waves.distance([1, 2, 3], [3, 2, 1])).toBe(0);
    expect(waves.distance([1, 2], [3, 4])).toBe(1);
    expect(waves.distance([1, 2, 3, 4], [3, 4])).toBe(0.5);
    expect(waves.distance([3, 4], [1, 2, 3, 4])).toBe(0.5);
  });

  it('is within the limit for samples of the same distribution, and above it for others', () => {
    const expected = drawn(5_000, 99);
    for (let seed = 1; seed <= 20; seed += 1) {
      const limit = waves.distanceByChance(200);
      expect(waves.distance(drawn(200, seed), expected)).toBeLessThan(limit);
      // All at one time.
      expect(waves.distance(Array<number>(200).fill(seed * 50), expected)).toBeGreaterThan(limit);
    }
  });
});

describe('a histogram', () => {
  it('counts each time once, in its bin', () => {
    expect(waves.histogram([0, 9, 10, 25, 29], { widthMs: 10 })).toEqual([[0, 2], [10, 1], [20, 2]]); // prettier-ignore
    expect(waves.histogram([5, 35], { fromMs: 10, toMs: 39, widthMs: 10 })).toEqual([[10, 0], [20, 0], [30, 1]]); // prettier-ignore
  });
});
