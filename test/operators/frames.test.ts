import { describe, it } from '@jest/globals';
import { Decoded } from '../../src/operators/items/decoded.js';
import { frames } from '../../src/operators/frames.js';
import { disconnected, frameOf, gapOf, issued, marbles, opened, reconnecting, requested } from './stream.js';

describe('frames', () => {
  const f = frameOf('f');
  const lifecycle = {
    t: requested(1),
    i: issued(2),
    o: opened(3),
    d: disconnected(4),
    r: reconnecting(5, 1),
    g: gapOf(4, 6),
  };

  it('emits frames and values created from them, and drops every lifecycle event', () => {
    const values = { ...lifecycle, f, D: new Decoded(1, f), n: 5, u: undefined, x: null };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-t-i-o-f-D-d-r-(og)-f-n-u-x-|', values);
      const sub = '         ^---------------------------!';
      const expected = '    -------f-D----------f-n-u-x-|';
      expectObservable(source$.pipe(frames())).toBe(expected, values);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it('errors with the source', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-o-f-#', { ...lifecycle, f }).pipe(frames())).toBe('---f-#', { f });
    });
  });
});
