import { describe, expect, it, jest } from '@jest/globals';
import { map, merge, NEVER, type Observable, type SchedulerLike, Subject, timer } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { freshness, type Freshness, Frame } from '../../src/index.js';
import { RecentIntervals } from '../../src/operators/freshness.js';
import { cases } from '../support/cases.js';
import { fakeTimers } from '../support/fake-timers.js';
import { disconnected, frameOf, gapOf, marbles, opened, watermark } from './stream.js';
import fc from 'fast-check';

const stale = (since: number, newestAt: number | undefined, maxAgeMs = 100): Freshness => {
  return { state: 'stale', since, newestAt, maxAgeMs };
};
const fresh = (since: number): Freshness => ({ state: 'fresh', since });

/** Emits a frame at each of these times, then nothing. */
const framesAt = (scheduler: TestScheduler, times: readonly number[]): Observable<unknown> =>
  merge(NEVER, ...times.map((at) => timer(at, scheduler).pipe(map(() => frameOf('f', at)))));
const every50Ms = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n * 50);

const recorded = (at: number) => Object.assign(new Frame('market', Buffer.from('r'), false, at, 1), { offset: at });

describe('freshness with maxAgeMs', () => {
  it.each<[title: string, source: string, expected: string, values: object]>([
    [
      'emits stale once the newest frame is too old, and fresh with the next frame',
      'f 49ms g 500ms h 20ms |',
      '160ms S 390ms F 20ms |',
      { f: frameOf('f', 0), g: frameOf('g', 50), h: frameOf('h', 551), S: stale(150, 50), F: fresh(551) },
    ],
    [
      "counts from the subscription until the first frame, and doesn't take opened for one",
      '50ms o 449ms |',
      '110ms S 389ms |',
      { o: opened(50), S: stale(100, undefined) },
    ],
    [
      'goes stale in an outage, and fresh with the first frame after it',
      'f 19ms d 279ms (og) 6ms h',
      '110ms S 199ms F',
      {
        ...{ f: frameOf('f', 0), d: disconnected(20), o: opened(300), g: gapOf(20, 300), h: frameOf('h', 310) },
        ...{ S: stale(100, 0), F: fresh(310) },
      },
    ],
    [
      'waits 10 ms beyond the limit for frames that a busy process reads late',
      'f 104ms g 500ms |',
      '215ms S 390ms |',
      { f: frameOf('f', 0), g: frameOf('g', 105), S: stale(205, 105) },
    ],
    [
      "doesn't become fresh when a relay sends frames late",
      '299ms (abc) 46ms |',
      '110ms S 188ms F 50ms |',
      { a: frameOf('a', 150), b: frameOf('b', 199), c: frameOf('c', 305), S: stale(100, undefined), F: fresh(305) },
    ],
    [
      'takes the time of arrival for an item that has no time',
      '49ms x 200ms |',
      '159ms S 90ms |',
      { S: stale(149, 49) },
    ],
    [
      'takes the times of the records of a log as the clock',
      '(abgcd) 500ms |',
      '(SF) 503ms |',
      {
        ...{ a: recorded(1_000), b: recorded(1_050), g: { ...gapOf(1_050, 2_000), offset: 1 } },
        ...{ c: recorded(2_001), d: recorded(2_050), S: stale(1_150, 1_050), F: fresh(2_001) },
      },
    ],
    [
      'uses the clock again once a watermark says that a log is live',
      '(bw) 500ms |',
      '110ms S 393ms |',
      { b: recorded(0), w: watermark(0), S: stale(100, 0) },
    ],
  ])('%s', (_title, source, expected, values) => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source$ = cold(source, values as Record<string, unknown>);
      const states$ = source$.pipe(freshness({ maxAgeMs: 100, scheduler }));
      const end = expected.endsWith('|') ? undefined : '^ 400ms !';
      expectObservable(states$, end).toBe(expected, values);
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

  // A page times frames by a monotonic clock, a server by the clock of the machine.
  it.each([
    ['a page', 'forward', 3_600_000, 0],
    ['a page', 'back', -3_600_000, 0],
    ['a server', 'forward', 3_600_000, 3_600_000],
    ['a server', 'back', -3_600_000, -3_600_000],
  ])(
    'is fresh with the next frame of %s after the clock was set %s in a silence',
    async (_, _direction, set, ahead) => {
      using _time = fakeTimers();
      const startedAt = Date.now();
      const source$ = new Subject<unknown>();
      const states: Freshness[] = [];
      const subscription = source$.pipe(freshness({ maxAgeMs: 1_000 })).subscribe((state) => states.push(state));
      source$.next(frameOf('f', startedAt));
      await jest.advanceTimersByTimeAsync(500);
      jest.setSystemTime(startedAt + 500 + set);
      await jest.advanceTimersByTimeAsync(1_500);
      expect(states).toEqual([stale(startedAt + 1_000, startedAt, 1_000)]);
      // If the relay sends a frame late, it's still late.
      source$.next(frameOf('late', startedAt + 500 + ahead));
      expect(states).toHaveLength(1);
      source$.next(frameOf('g', startedAt + 2_000 + ahead));
      expect(states.slice(1)).toEqual([fresh(startedAt + 2_000 + ahead)]);
      for (let ms = 2_500; ms < 6_000; ms += 500) {
        await jest.advanceTimersByTimeAsync(500);
        source$.next(frameOf('h', startedAt + ms + ahead));
      }
      expect(states).toHaveLength(2);
      subscription.unsubscribe();
    },
  );
});

describe('freshness with factor', () => {
  it("takes a multiple of the usual time between frames, or maxAgeMs if that's shorter", () => {
    marbles(({ expectObservable }, scheduler) => {
      const frames$ = framesAt(scheduler, [...every50Ms(150), 20_000]);
      const F = fresh(20_000);
      const bothOf = (maxAgeMs?: number) => frames$.pipe(freshness({ factor: 30, maxAgeMs, scheduler }));
      expectObservable(bothOf(), '20500ms !').toBe('8960ms S 11039ms F', { S: stale(8_950, 7_450, 1_500), F });
      expectObservable(bothOf(1_200), '20500ms !').toBe('8660ms S 11339ms F', { S: stale(8_650, 7_450, 1_200), F });
    });
  });

  it('has no limit before 100 intervals, unless you set maxAgeMs', () => {
    marbles(({ expectObservable }, scheduler) => {
      const frames$ = framesAt(scheduler, every50Ms(50));
      expectObservable(frames$.pipe(freshness({ factor: 30, scheduler })), '60000ms !').toBe('');
      const withMaximum$ = frames$.pipe(freshness({ factor: 30, maxAgeMs: 5_000, scheduler }));
      expectObservable(withMaximum$, '60000ms !').toBe('7460ms S', { S: stale(7_450, 2_450, 5_000) });
    });
  });

  it("doesn't count the time of an outage, and counts frames that were read together once", () => {
    marbles(({ expectObservable }, scheduler) => {
      // Three outages of 30 s in 150 frames would be the 99th percentile. Frames always arrive in pairs.
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

describe('freshness of a log', () => {
  it('takes its limit from the observed intervals, as in a live feed', () => {
    const states: Freshness[] = [];
    const source$ = new Subject<unknown>();
    source$.pipe(freshness({ factor: 30 })).subscribe((state) => states.push(state));
    for (const at of [...every50Ms(150), 8_900, 20_000]) source$.next(recorded(at));
    source$.complete();
    // The pause of 1,450 ms is below 30 times 50 ms.
    expect(states).toEqual([stale(10_400, 8_900, 1_500), fresh(20_000)]);
  });
});

const p99Of = (values: readonly number[]): number | undefined => {
  const intervals = new RecentIntervals();
  for (const value of values) intervals.add(value);
  return intervals.p99();
};

describe('the 99th percentile of intervals', () => {
  it('covers the last 1,024 intervals, by the nearest rank', () => {
    const interval = fc.double({ min: 0.001, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(fc.array(interval, { minLength: 100, maxLength: 3_000 }), (values) => {
        const known = values.slice(-1_024).sort((a, b) => a - b);
        expect(p99Of(values)).toBe(known[Math.ceil(known.length * 0.99) - 1]);
      }),
      { numRuns: cases(200) },
    );
  });

  it("doesn't change the order in which intervals are replaced", () => {
    const intervals = new RecentIntervals();
    for (let n = 0; n < 1_024; n += 1) intervals.add(n < 100 ? 1_000 : 1);
    expect(intervals.p99()).toBe(1_000);
    for (let n = 0; n < 100; n += 1) intervals.add(1);
    expect(intervals.p99()).toBe(1);
  });
});
