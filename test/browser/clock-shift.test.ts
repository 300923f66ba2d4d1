import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clockShiftMs } from '../../src/browser/clock-shift.js';

describe('clockShiftMs', () => {
  it.each([
    ['equal clocks', 1_000, 1_000, 1_000, 0],
    ['a second ahead', 10_000, 10_000, 9_000, 0],
    ['a second behind', 10_000, 10_000, 11_000, 0],
    ['more than a second ahead', 10_000, 10_000, 8_999, 1_001],
    ['more than a second behind', 10_000, 10_000, 11_001, -1_001],
    ['ten minutes ahead, over a slow network', 600_000, 604_000, 2_000, 600_000],
    ['two seconds ahead, over an equally slow network', 10_000, 14_000, 10_000, 0],
  ])('%s', (_what, askedAt, heardAt, relayAt, shiftMs) => {
    expect(clockShiftMs(askedAt, heardAt, relayAt, 0)).toBe(shiftMs);
  });

  it('keeps the estimate of the previous connection if it may be right, else replaces it', () => {
    expect(clockShiftMs(600_000, 600_040, 2_000, 598_500)).toBe(598_500);
    expect(clockShiftMs(600_000, 600_040, 2_000, 596_000)).toBe(598_020);
    expect(clockShiftMs(600_000, 600_040, 600_020, 598_500)).toBe(0);
  });

  it('is 0, or right to half of the round trip, for any asymmetry of the network', () => {
    const ms = (max: number) => fc.integer({ min: -max, max });
    fc.assert(
      fc.property(ms(1e9), fc.nat(20_000), fc.nat(20_000), (shift, there, back) => {
        const askedAt = 1e12;
        const found = clockShiftMs(askedAt, askedAt + there + back, askedAt + there - shift, 0);
        if (found !== 0) expect(Math.abs(found - shift)).toBeLessThanOrEqual((there + back) / 2 + 1);
        if (Math.abs(shift) <= 1_000) expect(found).toBe(0);
        if (Math.abs(shift) > 1_001 + there + back) expect(found).not.toBe(0);
      }),
    );
  });
});
