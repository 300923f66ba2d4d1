import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { reliabilityModule } from './library.js';
import { cases } from '../../test/support/cases.js';

interface Slope {
  readonly slope: number;
  readonly low: number;
  readonly high: number;
}
type Point = readonly [number, number];
const { slopeOf } = await reliabilityModule<{ slopeOf: (points: readonly Point[]) => Slope }>('lib/slope.mjs');
const { seeded } = await reliabilityModule<{ seeded: (seed: number) => () => number }>('lib/random.mjs');

const line = (count: number, slope: number, noise: number, seed = 1): Point[] => {
  const random = seeded(seed);
  return Array.from({ length: count }, (_, x) => [x, 20 + slope * x + noise * (random() - 0.5)]);
};

describe('the slope', () => {
  it('is exact for points on a line', () => {
    expect(slopeOf(line(50, 0.25, 0))).toEqual({ slope: 0.25, low: 0.25, high: 0.25 });
  });

  it('is not changed by a few outliers', () => {
    const points = line(60, 0, 0.1).map(([x, y]): Point => [x, x % 10 === 0 ? y + 1_000 : y]);
    expect(Math.abs(slopeOf(points).slope)).toBeLessThan(0.005);
  });

  it('has bounds that contain the true slope, and that exclude 0 if there is a slope', () => {
    const property = fc.property(fc.integer({ min: 1, max: 1e6 }), fc.constantFrom(-1, 0, 1), (seed, slope) => {
      const { low, high } = slopeOf(line(60, slope, 20, seed));
      // Three times the bounds: for one line in 100 the true slope is outside of them.
      const wide = high - low;
      expect(low - wide).toBeLessThanOrEqual(slope);
      expect(high + wide).toBeGreaterThanOrEqual(slope);
      if (slope !== 0) expect(Math.sign(low)).toBe(Math.sign(high));
    });
    fc.assert(property, { numRuns: cases(200) });
  });

  it('has bounds that contain the true slope in about 99 of 100 cases', () => {
    const bounds = Array.from({ length: 400 }, (_, seed) => slopeOf(line(40, 0, 1, seed)));
    const correct = bounds.filter(({ low, high }) => low <= 0 && high >= 0).length;
    expect(correct).toBeGreaterThan(388);
  });

  it('is found in whole numbers as well as in a line: handles are counted', () => {
    const steps = Array.from({ length: 60 }, (_, x): Point => [x, 10 + Math.floor(x / 10)]);
    expect(slopeOf(steps).low).toBeGreaterThan(0);
    expect(slopeOf(steps.map(([x]) => [x, 10]))).toEqual({ slope: 0, low: 0, high: 0 });
  });

  it.each([0, 1, 7])('has infinite bounds for %d points', (count) => {
    expect(slopeOf(line(count, 1, 0))).toEqual({ slope: NaN, low: -Infinity, high: Infinity });
  });

  it('is the same if the points of a long run are combined', () => {
    const { slope, low, high } = slopeOf(line(36_000, 0.001, 5));
    expect(slope).toBeCloseTo(0.001, 5);
    expect(low).toBeGreaterThan(0);
    expect(high).toBeLessThan(0.0011);
  });
});
