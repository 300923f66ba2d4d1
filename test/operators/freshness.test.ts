import { afterEach, describe, expect, it } from '@jest/globals';
import { concat, map, merge, NEVER, type Observable, type SchedulerLike, Subject } from 'rxjs';
import { throwError, timer } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  type Freshness,
  freshness,
  type FreshnessOptions,
  type RelayedEvent,
  shareFeed,
  type Stale,
  TradeFeedError,
  tradeFeed$,
} from '../../src/index.js';
import { ReplayedFrame, type ReplayedGap } from '../../src/operators/items/replayed.js';
import { createRelay, relayHandler } from '../../src/relay/index.js';
import { Web } from '../relay/support.js';
import { optionsFor } from '../support/feed.js';
import { workers } from '../support/start-worker.js';
import { accept, startWire, text } from '../support/wire.js';
import { waitFor } from '../support/wait-for.js';
import { disconnected, frameOf, gapOf, lost, marbles, opened, stopped } from './stream.js';

const stale = (since: number, newestAt: number | undefined, maxAgeMs = 100): Freshness => ({
  state: 'stale',
  since,
  newestAt,
  maxAgeMs,
});
const isStale = (state: Freshness): state is Stale => state.state === 'stale';
const fresh = (since: number): Freshness => ({ state: 'fresh', since });

/** Emits a frame at each of these times, then nothing. */
const framesAt = (scheduler: TestScheduler, times: readonly number[]): Observable<unknown> =>
  merge(NEVER, ...times.map((at) => timer(at, scheduler).pipe(map(() => frameOf('f', at)))));
const every50Ms = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n * 50);

describe('freshness with maxAgeMs', () => {
  it('emits stale when the newest frame is too old, and fresh with the next frame', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const values = { f: frameOf('f', 0), g: frameOf('g', 50), h: frameOf('h', 551) };
      const source$ = cold('f 49ms g 500ms h 20ms |', values);
      const expected = '    160ms S 390ms F 20ms |';
      expectObservable(source$.pipe(freshness({ maxAgeMs: 100, scheduler }))).toBe(expected, {
        S: stale(150, 50),
        F: fresh(551),
      });
      expectSubscriptions(source$.subscriptions).toBe('^ 571ms !');
    });
  });

  it('emits nothing while frames arrive in time', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const values = { f: frameOf('f', 0), g: frameOf('g', 90), h: frameOf('h', 180), i: frameOf('i', 270) };
      const source$ = cold('f 89ms g 89ms h 89ms i 80ms |', values);
      expectObservable(source$.pipe(freshness({ maxAgeMs: 100, scheduler }))).toBe('351ms |');
    });
  });

  it('counts from the subscription before the first frame, and opened is no frame', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source$ = cold('50ms o 449ms |', { o: opened(50) });
      expectObservable(source$.pipe(freshness({ maxAgeMs: 100, scheduler }))).toBe('110ms S 389ms |', {
        S: stale(100, undefined),
      });
    });
  });

  it('is stale in an outage, and fresh with the first frame after it', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const outage = { d: disconnected(20), o: opened(300), g: gapOf(20, 300) };
      const values = { ...outage, f: frameOf('f', 0), h: frameOf('h', 310) };
      const source$ = cold('f 19ms d 279ms (og) 6ms h', values);
      expectObservable(source$.pipe(freshness({ maxAgeMs: 100, scheduler })), '400ms !').toBe('110ms S 199ms F', {
        S: stale(100, 0),
        F: fresh(310),
      });
    });
  });

  it('emits each change once, again and again', () => {
    marbles(({ expectObservable }, scheduler) => {
      const states$ = framesAt(scheduler, [0, 300, 310, 320, 700]).pipe(freshness({ maxAgeMs: 100, scheduler }));
      expectObservable(states$, '1000ms !').toBe('110ms A 189ms B 129ms C 269ms D 109ms E', {
        ...{ A: stale(100, 0), B: fresh(300), C: stale(420, 320), D: fresh(700), E: stale(800, 700) },
      });
    });
  });

  it('waits for frames that arrive within 10 ms after the limit: a busy process reads them late', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const values = { f: frameOf('f', 0), g: frameOf('g', 105) };
      const source$ = cold('f 104ms g 500ms |', values);
      expectObservable(source$.pipe(freshness({ maxAgeMs: 100, scheduler }))).toBe('215ms S 390ms |', {
        S: stale(205, 105),
      });
    });
  });

  it('does not become fresh with frames that a relay sends late', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const values = { a: frameOf('a', 150), b: frameOf('b', 199), c: frameOf('c', 305) };
      const source$ = cold('299ms (abc) 46ms |', values);
      expectObservable(source$.pipe(freshness({ maxAgeMs: 100, scheduler }))).toBe('110ms S 188ms F 50ms |', {
        S: stale(100, undefined),
        F: fresh(305),
      });
    });
  });

  it.each([
    ['back', -3_600_000, '210ms S'],
    ['forward', 3_600_000, '110ms S'],
  ])('reports silence in time if the clock is set %s', (_direction, offset, expected) => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const clock: SchedulerLike = {
        now: () => scheduler.now() + (scheduler.now() >= 50 ? offset : 0),
        schedule: scheduler.schedule.bind(scheduler),
      };
      const source$ = cold('f', { f: frameOf('f', 0) });
      const states$ = source$.pipe(freshness({ maxAgeMs: 100, scheduler: clock }));
      expectObservable(states$, '400ms !').toBe(expected, { S: stale(100, 0) });
    });
  });

  it('takes the arrival as the time of an item without a time', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const states$ = cold('49ms x 200ms |').pipe(freshness({ maxAgeMs: 100, scheduler }));
      expectObservable(states$).toBe('159ms S 90ms |', { S: stale(149, 49) });
    });
  });

  it('errors with the source', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const { failure } = stopped(5);
      const source$ = cold('f--s#', { f: frameOf('f', 0), s: stopped(3) }, failure);
      expectObservable(source$.pipe(freshness({ maxAgeMs: 100, scheduler }))).toBe('----#', {}, failure);
    });
  });
});

describe('freshness with factor', () => {
  it('takes a multiple of the usual time between frames', () => {
    marbles(({ expectObservable }, scheduler) => {
      const states$ = framesAt(scheduler, [...every50Ms(150), 20_000]).pipe(freshness({ factor: 30, scheduler }));
      expectObservable(states$, '20500ms !').toBe('8960ms S 11039ms F', {
        S: stale(8_950, 7_450, 1_500),
        F: fresh(20_000),
      });
    });
  });

  it('has a limit of 1 s at least', () => {
    marbles(({ expectObservable }, scheduler) => {
      const states$ = framesAt(scheduler, every50Ms(150)).pipe(freshness({ factor: 2, scheduler }));
      expectObservable(states$, '20000ms !').toBe('8460ms S', { S: stale(8_450, 7_450, 1_000) });
    });
  });

  it('has no limit before 100 intervals, unless there is a maxAgeMs', () => {
    marbles(({ expectObservable }, scheduler) => {
      const frames$ = framesAt(scheduler, every50Ms(50));
      expectObservable(frames$.pipe(freshness({ factor: 30, scheduler })), '60000ms !').toBe('');
      const withMaximum$ = frames$.pipe(freshness({ factor: 30, maxAgeMs: 5_000, scheduler }));
      expectObservable(withMaximum$, '60000ms !').toBe('7460ms S', { S: stale(7_450, 2_450, 5_000) });
    });
  });

  it('takes the lower limit with both options', () => {
    marbles(({ expectObservable }, scheduler) => {
      const frames$ = framesAt(scheduler, every50Ms(150));
      const limit = (options: FreshnessOptions) =>
        frames$.pipe(
          freshness({ ...options, scheduler }),
          map((state) => (state.state === 'stale' ? state.maxAgeMs : 0)),
        );
      // The limit of `factor` becomes known while the watch waits for the other one.
      expectObservable(limit({ factor: 30, maxAgeMs: 9_000 }), '20000ms !').toBe('9010ms S', { S: 1_500 });
      expectObservable(limit({ factor: 30, maxAgeMs: 800 }), '20000ms !').toBe('8260ms S', { S: 800 });
    });
  });

  it('does not count the time of an outage, and counts frames of one read once', () => {
    marbles(({ expectObservable }, scheduler) => {
      // Three outages of 30 s in 150 frames would be the 99th percentile. Two frames arrive together each time.
      const times = Array.from({ length: 4 }, (_, run) => every50Ms(40).map((at) => run * 32_000 + at)).flat();
      const outages = [32_000, 64_000, 96_000].map((at) => timer(at - 1, scheduler).pipe(map(() => opened(at - 1))));
      const source$ = merge(...outages, framesAt(scheduler, [...times, ...times]));
      // The limit is known from the third run on.
      const expected = '67460ms S 28539ms F 3459ms T';
      expectObservable(source$.pipe(freshness({ factor: 30, scheduler })), '200000ms !').toBe(expected, {
        ...{ S: stale(67_450, 65_950, 1_500), F: fresh(96_000), T: stale(99_450, 97_950, 1_500) },
      });
    });
  });
});

describe('freshness of a recording', () => {
  const recorded = (at: number) => new ReplayedFrame('market', Buffer.from('r'), false, at, 1, at);

  it('takes the times of its events as the clock', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const gap: ReplayedGap = { ...gapOf(1_050, 2_000, lost(1_050)), offset: 1 };
      const values = { a: recorded(1_000), b: recorded(1_050), g: gap, c: recorded(2_001), d: recorded(2_050) };
      const states$ = cold('(abgcd) 500ms |', values).pipe(freshness({ maxAgeMs: 100, scheduler }));
      expectObservable(states$).toBe('(SF) 503ms |', { S: stale(1_150, 1_050), F: fresh(2_001) });
    });
  });

  it('does not become stale by a slow replay', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const states$ = cold('a 999ms b 999ms |', { a: recorded(0), b: recorded(99) }).pipe(
        freshness({ maxAgeMs: 100, scheduler }),
      );
      expectObservable(states$).toBe('2000ms |');
    });
  });

  it('has the limit of the observed intervals, too', () => {
    const states: Freshness[] = [];
    const source$ = new Subject<unknown>();
    source$.pipe(freshness({ factor: 30 })).subscribe((state) => states.push(state));
    for (const at of [...every50Ms(150), 8_900, 20_000]) source$.next(recorded(at));
    source$.complete();
    // The pause of 1,450 ms is below 30 times 50 ms.
    expect(states).toEqual([stale(10_400, 8_900, 1_500), fresh(20_000)]);
  });
});

describe('freshness has separate state', () => {
  it('for each subscription, also after a stop', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const { failure } = stopped(50);
      const stops$ = concat(
        cold('f 49ms |', { f: frameOf('f', 0) }),
        throwError(() => failure),
      );
      const states$ = stops$.pipe(freshness({ maxAgeMs: 100, scheduler }));
      expectObservable(states$).toBe('50ms #', {}, failure);
      expectObservable(states$, '200ms ^ 90ms !').toBe('250ms #', {}, failure);
    });
  });

  it('for each operator on one shared feed', () => {
    marbles(({ expectObservable }, scheduler) => {
      const shared$ = framesAt(scheduler, [0]).pipe(shareFeed({ scheduler }));
      expectObservable(shared$.pipe(freshness({ maxAgeMs: 100, scheduler })), '500ms !').toBe('110ms S', {
        S: stale(100, 0),
      });
      expectObservable(shared$.pipe(freshness({ maxAgeMs: 200, scheduler })), '500ms !').toBe('210ms S', {
        S: stale(200, 0, 200),
      });
    });
  });

  it.each<[string, object, string]>([
    ['no limit', {}, '`maxAgeMs` must be set, or `factor`'],
    ['a limit of 0', { maxAgeMs: 0 }, '`maxAgeMs`'],
    ['no finite limit', { maxAgeMs: Infinity }, '`maxAgeMs`'],
    ['a factor below 1', { factor: 0.5 }, '`factor`'],
    ['a factor without end', { factor: Infinity }, '`factor`'],
    ['no scheduler', { maxAgeMs: 1, scheduler: 1 }, '`scheduler`'],
    ['an unknown option', { maxAge: 1 }, '`maxAge`'],
  ])('refuses %s at once', (_name, options, name) => {
    expect(() => freshness(options)).toThrow(TradeFeedError);
    expect(() => freshness(options)).toThrow(name);
  });
});

describe('freshness of real sources', () => {
  afterEach(() => void workers.started.splice(0));
  const follow = (source$: Observable<unknown>, maxAgeMs: number) => {
    const states: Freshness[] = [];
    const subscription = source$.pipe(freshness({ maxAgeMs })).subscribe((state) => states.push(state));
    return { states, subscription };
  };

  it.each(['main', 'worker'] as const)('a connection that is open and silent, received in %s', async (receiveIn) => {
    // A frame that needs longer to arrive does not end the silence, so a busy machine needs time.
    const maxAgeMs = 500;
    await using wire = await startWire({ handshake: [accept(text('one'))] });
    const { states, subscription } = follow(tradeFeed$('market', optionsFor(wire, { receiveIn })), maxAgeMs);
    // A slow machine reports silence before the first frame, too.
    const afterFrame = ({ newestAt }: Stale): boolean => newestAt !== undefined;
    const { since, newestAt } = await waitFor(() => states.filter(isStale).find(afterFrame));
    expect(since).toBe((newestAt as number) + maxAgeMs);
    subscription.unsubscribe();
  });

  it('a page of a relay: stale while the feed is silent, then fresh', async () => {
    const source$ = new Subject<RelayedEvent>();
    const relay = createRelay(source$, { batchMs: 0 });
    await using web = await Web.start(relayHandler(relay, { authorize: () => true }));
    const { states, subscription } = follow(relayFeed$(web.url), 1_000);
    await waitFor(() => relay.status().clients.length === 1);
    await waitFor(() => states.length === 1);
    await waitFor(() => {
      source$.next(frameOf('f', Date.now()));
      return states.length > 1;
    });
    expect(states.slice(0, 2).map(({ state }) => state)).toEqual(['stale', 'fresh']);
    subscription.unsubscribe();
    relay.close();
  });
});
