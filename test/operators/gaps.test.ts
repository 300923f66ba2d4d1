import { describe, it } from '@jest/globals';
import { gaps } from '../../src/operators/gaps.js';
import { disconnected, frameOf, gapOf, issued, marbles, opened, reconnecting, requested } from './stream.js';

describe('gaps', () => {
  const values = {
    ...{ t: requested(1), i: issued(2), o: opened(3), d: disconnected(4), r: reconnecting(5, 1), g: gapOf(4, 6) },
    ...{ f: frameOf('f'), u: undefined },
  };

  it('emits only the gaps', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-t-i-o-f-d-r-(og)-f-u-g-|', values);
      const sub = '         ^-----------------------!';
      const expected = '    -------------g--------g-|';
      expectObservable(source$.pipe(gaps())).toBe(expected, values);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it('errors with the source', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-g-#', values).pipe(gaps())).toBe('-g-#', values);
    });
  });
});
