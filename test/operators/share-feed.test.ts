import { describe, expect, it } from '@jest/globals';
import { defer, type Observable, Subject, VirtualTimeScheduler } from 'rxjs';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { shareFeed } from '../../src/operators/share-feed.js';
import { marbles } from './stream.js';

const share = (lingerMs?: number) => shareFeed(lingerMs === undefined ? {} : { lingerMs });

describe('shareFeed', () => {
  it('opens one connection for all subscribers; a late subscriber receives values from then on', () => {
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

  it('closes the connection lingerMs after the last subscriber unsubscribed, 1 s by default', () => {
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

  it('closes the connection with the last subscriber if lingerMs is 0', () => {
    const source$ = new Subject();
    source$
      .pipe(shareFeed({ lingerMs: 0 }))
      .subscribe()
      .unsubscribe();
    expect(source$.observed).toBe(false);
  });

  it('uses the clock of the scheduler option', () => {
    const scheduler = new VirtualTimeScheduler();
    const source$ = new Subject();
    source$.pipe(shareFeed({ scheduler })).subscribe().unsubscribe();
    expect(source$.observed).toBe(true);
    scheduler.flush();
    expect([source$.observed, scheduler.frame]).toEqual([false, 1_000]);
  });

  it('keeps the connection when another subscriber subscribes in time, and otherwise opens a new one', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('ab--------c----');
      const shared$ = source$.pipe(share(4));
      expectObservable(shared$, '^!').toBe('a');
      expectObservable(shared$, '----^------!').toBe('----------c');
      expectObservable(shared$, '----------------^-!').toBe('----------------ab');
      expectSubscriptions(source$.subscriptions).toBe(['^--------------!', '----------------^-----!']);
    });
  });

  it('errors for all subscribers at a stop, and lets a new subscriber start again', () => {
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

  it('leaves no timer after a stop during the linger time', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('a-#');
      expectObservable(source$.pipe(share(10)), '^!').toBe('a');
      expectSubscriptions(source$.subscriptions).toBe('^-!');
    });
  });

  it.each<[string, object, string]>([
    ['a negative linger', { lingerMs: -1 }, '`lingerMs`'],
    ['no number', { lingerMs: '1' }, '`lingerMs`'],
    ['no scheduler', { scheduler: {} }, '`scheduler`'],
    ['an unknown option', { linger: 1 }, '`linger`'],
  ])('refuses %s at once', (_name, options, name) => {
    expect(() => shareFeed(options)).toThrow(TradeFeedError);
    expect(() => shareFeed(options)).toThrow(name);
  });
});
