import { describe, expect, it } from '@jest/globals';
import { defer, type Observable, Subject } from 'rxjs';
import { shareFeed } from '../../src/operators/share-feed.js';
import { marbles } from './stream.js';

const share = (lingerMs?: number) => shareFeed(lingerMs === undefined ? {} : { lingerMs });

describe('shareFeed', () => {
  it('opens one connection for all subscribers, and gives a late one the values from then on', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-a-b-c-d-');
      const shared$ = source$.pipe(share(3));
      const first = '       ^-----!';
      const second = '      ----^---!';
      expectObservable(shared$, first).toBe(' -a-b-c');
      expectObservable(shared$, second).toBe('-----c-d');
      expectSubscriptions(source$.subscriptions).toBe('^----------!');
    });
  });

  it('gives a value to the subscribers that were there when it arrived and still are', () => {
    const source = new Subject<string>();
    const shared$ = source.pipe(share());
    const received: string[] = [];
    const first = shared$.subscribe((value) => {
      received.push(`first ${value}`);
      second.unsubscribe();
      if (value === 'a') third.add(shared$.subscribe((next) => received.push(`joined ${next}`)));
    });
    const second = shared$.subscribe((value) => received.push(`second ${value}`));
    const third = shared$.subscribe((value) => received.push(`third ${value}`));
    source.next('a');
    source.next('b');
    expect(received).toEqual(['first a', 'third a', 'first b', 'third b', 'joined b']);
    source.complete();
    expect([first.closed, third.closed]).toEqual([true, true]);
  });

  it('closes the connection lingerMs after the last subscriber has left, 1 s by default', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const sources = [cold('a-'), cold('a-'), cold('a-')];
      for (const [n, lingerMs] of [5, 0, undefined].entries()) {
        const source$ = sources[n] as (typeof sources)[0];
        expectObservable(source$.pipe(share(lingerMs)), '^--!').toBe('a');
      }
      expectSubscriptions((sources[0] as (typeof sources)[0]).subscriptions).toBe('^-------!');
      expectSubscriptions((sources[1] as (typeof sources)[0]).subscriptions).toBe('^--!');
      expectSubscriptions((sources[2] as (typeof sources)[0]).subscriptions).toBe('^ 1002ms !');
    });
  });

  it('keeps the connection if another subscriber comes in time, and otherwise opens a new one', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('ab--------c----');
      const shared$ = source$.pipe(share(4));
      expectObservable(shared$, '^!').toBe('a');
      expectObservable(shared$, '----^------!').toBe('----------c');
      expectObservable(shared$, '----------------^-!').toBe('----------------ab');
      expectSubscriptions(source$.subscriptions).toBe(['^--------------!', '----------------^-----!']);
    });
  });

  it('errors for all subscribers when the feed stops, and starts over for a new subscriber', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const attempts = [cold('-a-#'), cold('-b-|'), cold('-c-')];
      let n = 0;
      const source$: Observable<string> = defer(() => attempts[n++] as (typeof attempts)[0]);
      const shared$ = source$.pipe(share(2));
      expectObservable(shared$).toBe('               -a-#');
      expectObservable(shared$, '--^').toBe('        ---#');
      expectObservable(shared$, '----^').toBe('      -----b-|');
      expectObservable(shared$, '---------^-!').toBe('----------c');
      for (const [at, sub] of ['^--!', '----^--!', '---------^---!'].entries())
        expectSubscriptions((attempts[at] as (typeof attempts)[0]).subscriptions).toBe(sub);
    });
  });
});
