import { describe, expect, it } from '@jest/globals';
import { amount, bytes, count, counted, duration, stopwatch } from '../../../src/cli/view/units.js';

describe('units', () => {
  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1_000, '1.0 s'],
    [9_949, '9.9 s'],
    [9_950, '10 s'],
    [30_000, '30 s'],
    [59_499, '59 s'],
    [59_500, '1 min 00 s'],
    [83_000, '1 min 23 s'],
    [3_599_499, '59 min 59 s'],
    [3_600_000, '1 h 00 min'],
    [400_000_000, '111 h 06 min'],
  ])('%d ms is %s', (ms, words) => expect(duration(ms)).toBe(words));

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.0 kB'],
    [421_000, '421 kB'],
    [1_250_000, '1.3 MB'],
    [5e9, '5.0 GB'],
    [5e12, '5.0 TB'],
    [5e15, '5,000 TB'],
  ])('%d bytes are %s', (number, words) => expect(bytes(number)).toBe(words));

  it.each([
    [0, '0:00'],
    [-5, '0:00'],
    [61_999, '1:01'],
    [3_723_000, '1:02:03'],
  ])('%d ms on a stopwatch are %s', (ms, words) => expect(stopwatch(ms)).toBe(words));

  it('numbers have one decimal below 100', () => {
    expect([amount(0), amount(20.14), amount(99.94), amount(99.96), amount(1_842.4)]).toStrictEqual([
      '0.0',
      '20.1',
      '99.9',
      '100',
      '1,842',
    ]);
    expect([count(1_842), counted(1, 'frame'), counted(0, 'frame'), counted(1_842, 'frame')]).toStrictEqual([
      '1,842',
      '1 frame',
      '0 frames',
      '1,842 frames',
    ]);
  });
});
