import { describe, expect, it } from '@jest/globals';
import { asyncScheduler, type SchedulerLike, Subject, type Subscription, take } from 'rxjs';
import type { FeedEvent } from '../../../src/protocol/event.js';
import type { FeedWindow } from '../../../src/operators/window/feed-window.js';
import { framesUpTo, type WindowContents } from '../../../src/operators/window/window-contents.js';
import { windowsOf } from '../../../src/operators/window/windows-of.js';
import { frameOf, marbles, opened } from '../stream.js';
import { inWords, letters, stamped } from './window-words.js';

const contents = framesUpTo(10) as WindowContents<unknown, unknown, unknown>;
const lengthOf = (lengthMs: number) => ({ lengthMs, everyMs: lengthMs, align: 'epoch', allowedLatenessMs: 0 }) as const;

/** Counts the timers of a scheduler, and records their delays. */
const counting = (scheduler: SchedulerLike, offsetMs = 0) => {
  const delays: unknown[] = [];
  const ask = scheduler.schedule.bind(scheduler) as (...args: readonly unknown[]) => Subscription;
  const counted: SchedulerLike = {
    now: () => scheduler.now() + offsetMs,
    schedule: (...args: readonly unknown[]) => {
      delays.push(args[1]);
      return ask(...args);
    },
  };
  return { counted, delays };
};

describe('windowsOf', () => {
  it('sets no timer before the first event, and one for each window after it', () => {
    marbles(({ cold, flush }, scheduler) => {
      const { counted, delays } = counting(scheduler);
      const emitted: number[] = [];
      cold('---o-abc-abc', letters)
        .pipe(stamped(scheduler), windowsOf(lengthOf(10), contents, counted), take(3))
        .subscribe(() => emitted.push(scheduler.now()));
      flush();
      expect(emitted).toEqual([10, 20, 30]);
      expect(delays).toEqual([7, 10, 10]);
    });
  });

  it('sets the timer again when an event passes the end of a window', () => {
    marbles(({ cold, flush }, scheduler) => {
      const { counted, delays } = counting(scheduler);
      const emitted: string[] = [];
      cold('o-l-', { o: opened(1_000), l: frameOf('a', 2_006) })
        .pipe(windowsOf(lengthOf(500), contents, counted), take(4))
        .subscribe((window) => emitted.push(`${inWords(window as FeedWindow<unknown>)} at ${scheduler.now()}`));
      flush();
      expect(emitted).toEqual(['1000-1500 at 2', '1500-2000 at 2', '2000-2500 a at 496', '2500-3000 at 996']);
      expect(delays).toEqual([500, 494, 500]);
    });
  });

  it('waits for the rest, at least 1 ms, when a timer fires early', () => {
    marbles(({ cold, flush }, scheduler) => {
      const { counted, delays } = counting(scheduler, -0.5);
      const emitted: number[] = [];
      // From 5 ms on, the clock is 0.5 ms slow.
      let isLate = false;
      const clock = { ...counted, now: () => scheduler.now() - (isLate ? 0.5 : 0) };
      cold('o', letters)
        .pipe(stamped(scheduler), windowsOf(lengthOf(10), contents, clock), take(1))
        .subscribe(() => emitted.push(scheduler.now()));
      scheduler.schedule(() => (isLate = true), 5);
      flush();
      expect(emitted).toEqual([11]);
      expect(delays).toEqual([10, 1]);
    });
  });

  it('shortens a wait that is too long for a timer', () => {
    const { counted, delays } = counting({ now: () => 0, schedule: () => asyncScheduler.schedule(() => undefined) });
    const source = new Subject<FeedEvent>();
    const subscription = source.pipe(windowsOf(lengthOf(2 ** 40), contents, counted)).subscribe();
    source.next(opened(0));
    subscription.unsubscribe();
    expect(delays).toEqual([2 ** 31 - 1]);
  });

  it('leaves no timer', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source$ = cold('o-a----', letters);
      expectObservable(source$.pipe(stamped(scheduler), windowsOf(lengthOf(1_000), contents, scheduler)), '^---!').toBe(
        '-',
      );
      expectSubscriptions(source$.subscriptions).toBe('^---!');
      scheduler.flush();
      expect(scheduler.now()).toBeLessThan(1_000);
    });
  });
});
