import { describe, expect, it } from '@jest/globals';
import { accumulated, framesUpTo } from '../../../src/operators/window/window-contents.js';

const facts = { type: 'window', start: 0, end: 10, count: 2, gaps: [], complete: true } as const;

describe('framesUpTo', () => {
  it('has a separate array of items for each window', () => {
    const { seed, add, limit, toWindow } = framesUpTo<string>(3);
    const [one, other] = [seed(), seed()];
    add(add(one, 'a'), 'b');
    expect([one, other, limit]).toEqual([['a', 'b'], [], 3]);
    expect(toWindow(facts, one, 1)).toEqual({ ...facts, frames: ['a', 'b'], dropped: 1 });
  });
});

describe('accumulated', () => {
  it('has the accumulated value, for any number of items', () => {
    const { seed, add, limit, toWindow, keep } = accumulated({ seed: () => 1, add: (sum, n: number) => sum + n });
    expect([seed(), add(1, 2), limit, keep(5)]).toEqual([1, 3, Infinity, 5]);
    expect(toWindow(facts, 3, 0)).toEqual({ ...facts, value: 3 });
  });
});
