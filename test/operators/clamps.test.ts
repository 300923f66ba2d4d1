import { describe, expect, it } from '@jest/globals';
import { type Observable, type SchedulerLike, Subject, Subscription, VirtualTimeScheduler } from 'rxjs';
import { conflate } from '../../src/operators/conflate.js';
import { countWindow } from '../../src/operators/count-window.js';
import { feedStats } from '../../src/operators/feed-stats.js';
import { shareFeed } from '../../src/operators/share-feed.js';
import { slidingWindow } from '../../src/operators/sliding-window.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { MAX_TIMER_MS } from '../../src/protocol/rules.js';
import { frameOf, opened } from './stream.js';

/** About 35 years: a timer of Node would fire at once. */
const tooLong = 2 ** 40;

/** Records the requested delays, and runs nothing. */
const noting = (): { readonly scheduler: SchedulerLike; readonly delays: (number | undefined)[] } => {
  const delays: (number | undefined)[] = [];
  const scheduler: SchedulerLike = {
    now: () => 0,
    schedule: (_work: unknown, delay?: number) => {
      delays.push(delay);
      return new Subscription();
    },
  };
  return { scheduler, delays };
};

type Operator = (source: Observable<FeedEvent>) => Observable<unknown>;

/** Returns the delays that an operator requests while a feed opens, emits a frame, and is unsubscribed from. */
const delaysOf = (operator: (scheduler: SchedulerLike) => Operator): (number | undefined)[] => {
  const { scheduler, delays } = noting();
  const source = new Subject<FeedEvent>();
  const subscription = operator(scheduler)(source).subscribe();
  source.next(opened(0));
  source.next(frameOf('a', 1));
  subscription.unsubscribe();
  return delays;
};

describe('a delay that is too long for a timer', () => {
  const operators: readonly (readonly [name: string, (scheduler: SchedulerLike) => Operator])[] = [
    ['shareFeed', (scheduler) => shareFeed({ lingerMs: tooLong, scheduler })],
    ['shareFeed, for ever', (scheduler) => shareFeed({ lingerMs: Infinity, scheduler })],
    ['feedStats', (scheduler) => feedStats({ everyMs: tooLong, scheduler })],
    ['feedStats, for ever', (scheduler) => feedStats({ everyMs: Infinity, scheduler })],
    ['tumblingWindow', (scheduler) => tumblingWindow({ lengthMs: tooLong, scheduler })],
    ['tumblingWindow from the start', (scheduler) => tumblingWindow({ lengthMs: tooLong, align: 'start', scheduler })],
    ['slidingWindow', (scheduler) => slidingWindow({ lengthMs: tooLong, everyMs: tooLong / 2, scheduler })],
    ['conflate, as long as it may be', (scheduler) => conflate(() => 1, MAX_TIMER_MS, { scheduler })],
  ];

  it.each(operators)('is shortened to the maximum delay by %s', (_name, operator) => {
    expect(delaysOf(operator)).toEqual([2 ** 31 - 1]);
  });

  it.each<[string, (scheduler: SchedulerLike) => Operator]>([
    ['tumblingWindow', (scheduler) => tumblingWindow({ lengthMs: tooLong, scheduler })],
    ['slidingWindow', (scheduler) => slidingWindow({ lengthMs: tooLong, everyMs: tooLong, scheduler })],
  ])('is split into several timers by %s', (_name, operator) => {
    const clock = new VirtualTimeScheduler();
    const source = new Subject<FeedEvent>();
    const emitted: number[] = [];
    const subscription = operator(clock)(source).subscribe(() => {
      emitted.push(clock.now());
      if (emitted.length === 2) subscription.unsubscribe();
    });
    source.next(opened(0));
    clock.flush();
    expect(emitted).toEqual([tooLong, 2 * tooLong]);
  });

  it('is refused by conflate', () => {
    for (const everyMs of [MAX_TIMER_MS + 1, tooLong, Infinity])
      expect(() => conflate(() => 1, everyMs)).toThrow(
        /`everyMs` must be a number of ms, above 0 and at most 2147483647/,
      );
  });

  it('does not concern countWindow, which has no timer', () => {
    expect(delaysOf((scheduler) => countWindow(2 ** 40, { scheduler }))).toEqual([]);
  });
});
