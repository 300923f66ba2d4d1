import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { NEVER, Observable, Subject } from 'rxjs';
import { deadline, stalled$ } from '../../src/transport/deadline.js';

const MAX_TIMER_MS = 2_147_483_647;
const late = new Error('late');

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

/** Subscribes to a deadline of 10 ms. */
const limited = (source: Observable<number>, ms = 10, onTimeout: () => unknown = () => late) => {
  const observer = { next: jest.fn(), error: jest.fn(), complete: jest.fn() };
  const subscription = source.pipe(deadline(ms, onTimeout)).subscribe(observer);
  return { ...observer, subscription };
};

describe('deadline', () => {
  it('errors if no value arrives in time, and unsubscribes from its source', () => {
    const source = new Subject<number>();
    const { error } = limited(source);
    jest.advanceTimersByTime(9);
    expect(error).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    jest.runAllTimers();
    expect(error.mock.calls).toEqual([[late]]);
    expect(source.observed).toBe(false);
  });

  it("doesn't limit the source after its first value", () => {
    const source = new Subject<number>();
    const { next, error, complete } = limited(source);
    jest.advanceTimersByTime(9);
    source.next(1);
    expect(jest.getTimerCount()).toBe(0);
    source.next(2);
    source.complete();
    expect([next.mock.calls, complete.mock.calls, error.mock.calls]).toEqual([[[1], [2]], [[]], []]);
  });

  it('accepts a value that arrived in time but is read in the turn after the timer', () => {
    // The event loop was blocked past the deadline: the timer fires first, then the socket is read.
    const source = new Observable<number>((subscriber) => {
      setTimeout(() => setImmediate(() => subscriber.next(1)), 10);
    });
    const { next, error, subscription } = limited(source);
    jest.advanceTimersByTime(1_000);
    expect([next.mock.calls, error.mock.calls]).toEqual([[[1]], []]);
    subscription.unsubscribe();
  });

  it.each([2 ** 31, Infinity])("doesn't fire at once for %d ms, which no timer can wait", (ms) => {
    const { error, subscription } = limited(NEVER, ms);
    jest.advanceTimersByTime(MAX_TIMER_MS - 1);
    expect(error).not.toHaveBeenCalled();
    subscription.unsubscribe();
  });

  it.each([5, 10])('stops its timer and its source when unsubscribed after %d ms', (ms) => {
    const source = new Subject<number>();
    const { subscription } = limited(source);
    jest.advanceTimersByTime(ms);
    subscription.unsubscribe();
    expect([jest.getTimerCount(), source.observed]).toEqual([0, false]);
  });
});

/** When a connection receives bytes, and how long it takes to answer a ping, in ms; `null`: never. */
interface Line {
  readonly readAt?: readonly number[];
  readonly answersAfterMs?: readonly (number | null)[];
}

/** Watches a connection, and returns when it was pinged and when it was found stalled. */
const watch = (idleTimeoutMs: number, { readAt = [], answersAfterMs = [] }: Line = {}) => {
  const startedMs = performance.now();
  let lastReadMs = startedMs;
  const pings: number[] = [];
  const stalls: number[] = [];
  const read = (): void => {
    lastReadMs = performance.now();
  };
  // Reads follow the timers of their turn.
  for (const at of readAt) setTimeout(() => setImmediate(read), at);
  const ping = (): void => {
    const answerMs = answersAfterMs[pings.length] ?? null;
    pings.push(performance.now() - startedMs);
    if (answerMs !== null) setTimeout(() => setImmediate(read), answerMs);
  };
  const subscription = stalled$({ lastReadMs: () => lastReadMs, ping }, idleTimeoutMs).subscribe({
    next: () => stalls.push(performance.now() - startedMs),
  });
  return { pings, stalls, subscription };
};

// In fake time, the turn after a timer takes 1 ms.
describe('stalled$', () => {
  it.each<[string, number, Line, number[], number[]]>([
    ['pings after idleTimeoutMs, and emits after the same time again', 10, {}, [11], [22]],
    ['waits at most 5 s for an answer', 30_000, {}, [30_001], [35_002]],
    ['waits the same time for an answer up to 5 s', 5_000, {}, [5_001], [10_002]],
    ['measures the silence from the last read', 10, { readAt: [4, 9] }, [21], [32]],
    ['pings again after an answer', 10, { answersAfterMs: [3, 3, 3] }, [11, 26, 41, 56], [67]],
    ['emits when the answers stop', 10, { answersAfterMs: [3] }, [11, 26], [37]],
    ['accepts any byte after the ping as its answer', 10, { readAt: [15] }, [11, 27], [38]],
    ['accepts an answer that is read with the timer of its deadline', 10, { answersAfterMs: [10] }, [11, 33], [44]],
    ['does not ping if waiting bytes are read in the turn after the timer', 10, { readAt: [10] }, [22], [33]],
  ])('%s', (_title, idleTimeoutMs, line, pings, stalls) => {
    const seen = watch(idleTimeoutMs, line);
    jest.advanceTimersByTime(60_000);
    expect([seen.pings, seen.stalls]).toEqual([pings, stalls]);
    expect(seen.subscription.closed).toBe(true);
  });

  it('checks again in 1 ms if a timer fires too early', () => {
    // The clock is slower than the timers, which can happen in Node.
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => Date.now() * 0.95);
    const start = Date.now();
    const pings: number[] = [];
    const lastReadMs = performance.now();
    stalled$({ lastReadMs: () => lastReadMs, ping: () => pings.push(Date.now() - start) }, 10).subscribe();
    jest.advanceTimersByTime(60);
    expect(pings).toEqual([11]);
    clock.mockRestore();
  });

  it('does nothing if it is disabled', () => {
    watch(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([5, 10, 15, 20])('stops its timers when unsubscribed after %d ms', (ms) => {
    const { subscription } = watch(10);
    jest.advanceTimersByTime(ms - 1);
    subscription.unsubscribe();
    expect(jest.getTimerCount()).toBe(0);
  });
});
