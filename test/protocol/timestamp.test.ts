import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseTimestamp } from '../../src/protocol/timestamp.js';
import { cases } from '../support/cases.js';

describe('parseTimestamp', () => {
  it.each([
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01T00:00:01.5Z', 1_500],
    ['1970-01-01t01:00:00+01:00', 0],
    ['1969-12-31T23:00:00-01:00', 0],
    // A leap second counts as the second before it, so a ticket expires at most one second early.
    ['2016-12-31T23:59:60Z', Date.UTC(2016, 11, 31, 23, 59, 59)],
    ['2016-12-31T23:59:60.25Z', Date.UTC(2016, 11, 31, 23, 59, 59, 250)],
    ['2017-01-01T00:59:60+01:00', Date.UTC(2016, 11, 31, 23, 59, 59)],
  ])('parses %s', (text, ms) => {
    expect(parseTimestamp(text)).toBe(ms);
  });

  it.each(['', '1970-01-01', '1970-01-01T00:00:00', '1970-01-01T00:00:00ZZ', 'x1970-01-01T00:00:00Z'])(
    'returns NaN for %j',
    (text) => {
      expect(parseTimestamp(text)).toBeNaN();
    },
  );

  it('parses every output of toISOString with a year of four digits', () => {
    const moments = fc.integer({ min: Date.UTC(0, 0, 1), max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(moments, (ms) => {
        expect(parseTimestamp(new Date(ms).toISOString())).toBe(ms);
      }),
      { numRuns: cases(100) },
    );
  });
});
