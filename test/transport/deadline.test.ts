import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { EMPTY, NEVER, Observable, of, Subject } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { deadline, socketsRead$, timerAfterReads } from '../../src/transport/deadline.js';

const MAX_TIMER_MS = 2_147_483_647;
const late = new Error('late');

const recorder = () => ({ next: jest.fn(), error: jest.fn(), complete: jest.fn() });

// `deadline` and the turn of the event loop accept no scheduler, so the tests use the fake timers of jest.
beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

describe('socketsRead$', () => {
  it('emits and completes after one turn of the event loop, not before', async () => {
    const observer = recorder();
    socketsRead$.subscribe(observer);
    await Promise.resolve();
    expect(observer.next).not.toHaveBeenCalled();
    jest.advanceTimersByTime(0);
    expect(observer.next).toHaveBeenCalledTimes(1);
    expect(observer.complete).toHaveBeenCalledTimes(1);
  });

  it('cleans up when it is unsubscribed', () => {
    const observer = recorder();
    const subscription = socketsRead$.subscribe(observer);
    expect(jest.getTimerCount()).toBe(1);
    subscription.unsubscribe();
    expect(jest.getTimerCount()).toBe(0);
    jest.runAllTimers();
    expect(observer.next).not.toHaveBeenCalled();
  });

  it('uses a separate turn for each subscription', () => {
    const [one, two] = [recorder(), recorder()];
    socketsRead$.subscribe(one).unsubscribe();
    socketsRead$.subscribe(two);
    jest.runAllTimers();
    expect(one.next).not.toHaveBeenCalled();
    expect(two.next).toHaveBeenCalledTimes(1);
  });
});

describe('timerAfterReads', () => {
  const marbles = (
    test: (helpers: Parameters<Parameters<TestScheduler['run']>[0]>[0], scheduler: TestScheduler) => void,
  ) => {
    const scheduler = new TestScheduler((actual, expected) => {
      expect(actual).toEqual(expected);
    });
    scheduler.run((helpers) => {
      test(helpers, scheduler);
    });
  };

  it('emits once after the time, when the sockets were read, then completes', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const reads = cold('     --(r|)');
      const readsSub = ' 10ms ^-!';
      const expected = ' 10ms --(t|)';
      expectObservable(timerAfterReads(10, scheduler, reads)).toBe(expected, { t: 0 });
      expectSubscriptions(reads.subscriptions).toBe(readsSub);
    });
  });

  it.each([2 ** 31, 1e15, Infinity])('waits as long as a timer can for %d ms, instead of firing at once', (ms) => {
    marbles(({ expectObservable }, scheduler) => {
      expectObservable(timerAfterReads(ms, scheduler, of('read'))).toBe(`${MAX_TIMER_MS}ms (t|)`, { t: 0 });
    });
  });

  it.each([
    ['the wait', '5ms !', []],
    ['the turn of the reads', '11ms !', ['10ms ^!']],
  ])('cleans up when it is unsubscribed during %s', (_when, unsub, readsSubs) => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const reads = cold('--(r|)');
      expectObservable(timerAfterReads(10, scheduler, reads), unsub).toBe('');
      expectSubscriptions(reads.subscriptions).toBe(readsSubs);
      flush();
      expect(scheduler.actions).toHaveLength(0);
    });
  });

  it('uses one turn of the event loop by default', () => {
    const observer = recorder();
    timerAfterReads(10).subscribe(observer);
    jest.advanceTimersByTime(9);
    expect(observer.next).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    jest.runAllTimers();
    expect(observer.next).toHaveBeenCalledTimes(1);
    expect(observer.complete).toHaveBeenCalledTimes(1);
  });
});

describe('deadline', () => {
  it('errors after the time without a value, and unsubscribes from its source', () => {
    const observer = recorder();
    const source = new Subject<number>();
    source.pipe(deadline(10, () => late)).subscribe(observer);
    jest.advanceTimersByTime(9);
    expect(observer.error).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    jest.runAllTimers();
    expect(observer.error).toHaveBeenCalledTimes(1);
    expect(observer.error).toHaveBeenCalledWith(late);
    expect(source.observed).toBe(false);
  });

  it('does not limit the source after its first value', () => {
    const observer = recorder();
    const source = new Subject<number>();
    source.pipe(deadline(10, () => late)).subscribe(observer);
    jest.advanceTimersByTime(9);
    source.next(1);
    expect(jest.getTimerCount()).toBe(0);
    jest.advanceTimersByTime(60_000);
    source.next(2);
    source.complete();
    expect(observer.next.mock.calls).toEqual([[1], [2]]);
    expect(observer.complete).toHaveBeenCalledTimes(1);
    expect(observer.error).not.toHaveBeenCalled();
  });

  it('accepts a value that had arrived and is read in the turn after the timer', () => {
    const observer = recorder();
    const source = new Observable<number>((subscriber) => {
      // The event loop was blocked past the deadline: the timer fires first, then the socket is read.
      setTimeout(() => setImmediate(() => subscriber.next(1)), 10);
    });
    const subscription = source.pipe(deadline(10, () => late)).subscribe(observer);
    jest.advanceTimersByTime(1_000);
    expect(observer.next.mock.calls).toEqual([[1]]);
    expect(observer.error).not.toHaveBeenCalled();
    subscription.unsubscribe();
  });

  it('passes on an error and a completion of its source, and stops its timer', () => {
    const [failed, ended] = [recorder(), recorder()];
    const source = new Subject<number>();
    source.pipe(deadline(10, () => late)).subscribe(failed);
    const mine = new Error('mine');
    source.error(mine);
    expect(failed.error.mock.calls).toEqual([[mine]]);
    EMPTY.pipe(deadline(10, () => late)).subscribe(ended);
    expect(ended.complete).toHaveBeenCalledTimes(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('creates the error only when the time is over, each time', () => {
    const onTimeout = jest.fn(() => new Error('late'));
    const source$ = NEVER.pipe(deadline(10, onTimeout));
    const [one, two] = [recorder(), recorder()];
    source$.subscribe(one);
    source$.subscribe(two);
    expect(onTimeout).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1_000);
    expect(onTimeout).toHaveBeenCalledTimes(2);
    expect(one.error.mock.calls[0]?.[0]).not.toBe(two.error.mock.calls[0]?.[0]);
  });

  it.each([2 ** 31, Infinity])('does not fire at once with %d ms', (ms) => {
    const observer = recorder();
    const subscription = NEVER.pipe(deadline(ms, () => late)).subscribe(observer);
    jest.advanceTimersByTime(MAX_TIMER_MS - 1);
    expect(observer.error).not.toHaveBeenCalled();
    subscription.unsubscribe();
  });

  it('cleans up when it is unsubscribed', () => {
    const observer = recorder();
    const source = new Subject<number>();
    const subscription = source.pipe(deadline(10, () => late)).subscribe(observer);
    subscription.unsubscribe();
    expect(jest.getTimerCount()).toBe(0);
    expect(source.observed).toBe(false);
  });
});
