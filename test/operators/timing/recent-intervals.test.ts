import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RecentIntervals } from '../../../src/operators/timing/recent-intervals.js';
import { cases } from '../../support/cases.js';

const p99Of = (values: readonly number[]): number | undefined => {
  const intervals = new RecentIntervals();
  for (const value of values) intervals.add(value);
  return intervals.p99();
};

describe('the 99th percentile of intervals', () => {
  it('is unknown before 100 intervals', () => {
    expect(p99Of(Array.from({ length: 99 }, () => 5))).toBe(undefined);
    expect(p99Of(Array.from({ length: 100 }, () => 5))).toBe(5);
  });

  it('ignores one interval in a hundred', () => {
    expect(p99Of([...Array.from({ length: 99 }, () => 5), 60_000])).toBe(5);
    expect(p99Of([...Array.from({ length: 98 }, () => 5), 60_000, 60_000])).toBe(60_000);
  });

  it('is the percentile of the last 1,024 intervals, by the nearest rank', () => {
    const interval = fc.double({ min: 0.001, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(fc.array(interval, { minLength: 100, maxLength: 3_000 }), (values) => {
        const known = values.slice(-1_024).sort((a, b) => a - b);
        expect(p99Of(values)).toBe(known[Math.ceil(known.length * 0.99) - 1]);
      }),
      { numRuns: cases(200) },
    );
  });

  it('does not change the order in which intervals are replaced', () => {
    const intervals = new RecentIntervals();
    for (let n = 0; n < 1_024; n += 1) intervals.add(n < 100 ? 1_000 : 1);
    expect(intervals.p99()).toBe(1_000);
    for (let n = 0; n < 100; n += 1) intervals.add(1);
    expect(intervals.p99()).toBe(1);
  });
});
