import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { windowGrid } from '../../../src/operators/window/window-grid.js';

const shapes = fc
  .tuple(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 1_000 }))
  .map(([a, b]) => ({ lengthMs: Math.max(a, b), everyMs: Math.min(a, b) }));
const times = fc.integer({ min: -100_000, max: 2_000_000_000_000 });

describe('windowGrid', () => {
  it('has consecutive windows from its origin', () => {
    const { start, end, firstAt, lastAt } = windowGrid(10, 10, 3);
    expect([start(0), end(0), start(1), start(-1)]).toEqual([3, 13, 13, -7]);
    expect([firstAt(12), lastAt(12), firstAt(13), lastAt(13)]).toEqual([0, 0, 1, 1]);
  });

  it('has no window before the first', () => {
    const { firstAt, lastAt } = windowGrid(10, 2, 3, 0);
    expect([firstAt(3), lastAt(3), firstAt(13), lastAt(13)]).toEqual([0, 0, 1, 5]);
  });

  it('finds exactly the windows that contain a time', () => {
    fc.assert(
      fc.property(shapes, times, times, ({ lengthMs, everyMs }, origin, time) => {
        const { start, end, firstAt, lastAt } = windowGrid(lengthMs, everyMs, origin);
        const [first, last] = [firstAt(time), lastAt(time)];
        expect(end(first - 1)).toBeLessThanOrEqual(time);
        expect(end(first)).toBeGreaterThan(time);
        expect(start(last)).toBeLessThanOrEqual(time);
        expect(start(last + 1)).toBeGreaterThan(time);
        expect(first).toBeLessThanOrEqual(last);
      }),
    );
  });
});
