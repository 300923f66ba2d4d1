/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { concat, NEVER, Observable, of, range, take, tap, throwError } from 'rxjs';
import {
  fromPlatform,
  type PlatformObservable,
  subscribed,
  toPlatform,
  toStore,
  untilAborted,
} from 'rx-trade-feed/interop';
import type { PlatformSubscriber } from 'rx-trade-feed/interop';
import { marketBatches$ } from 'rx-trade-feed/testing';
import { commentFencesOf, filesIn } from '../docs/fences.js';
import { itPrints } from '../docs/run-fences.js';

// test/apps/interop.test.mjs has the tests with RxJS 9, Chromium, React and Effect.

/** Counts the subscriptions to a source: all, and those that are open. */
const counted = <T>(source: Observable<T>) => {
  const counts = { all: 0, open: 0 };
  const counted$ = new Observable<T>((subscriber) => {
    counts.all += 1;
    counts.open += 1;
    subscriber.add(() => (counts.open -= 1));
    subscriber.add(source.subscribe(subscriber));
  });
  return { counts, counted$ };
};

/** A platform Observable with one producer for each subscription. It calls its observer without `this`, as Chromium does. */
class Platform<T> implements PlatformObservable<T> {
  readonly #start: (subscriber: PlatformSubscriber<T>) => void;
  constructor(start: (subscriber: PlatformSubscriber<T>) => void) {
    this.#start = start;
  }
  subscribe(
    { next, error, complete }: Parameters<PlatformObservable<T>['subscribe']>[0],
    options: { signal: AbortSignal },
  ) {
    const close = new AbortController();
    const whileOpen =
      <A extends unknown[]>(call: (...args: A) => void, isEnd: boolean) =>
      (...args: A) => {
        if (close.signal.aborted || options.signal.aborted) return;
        if (isEnd) close.abort();
        call(...args);
      };
    options.signal.addEventListener('abort', () => close.abort());
    if (options.signal.aborted) close.abort();
    this.#start({
      next: whileOpen(next, false),
      error: whileOpen(error, true),
      complete: whileOpen(complete, true),
      signal: close.signal,
    });
  }
}

/** Subscribes, and returns what arrives. */
const subscribeTo = <T>(source: Observable<T>) => {
  const received: unknown[] = [];
  const subscription = source.subscribe({
    next: (value) => received.push(value),
    error: (error: unknown) => received.push({ error }),
    complete: () => received.push('complete'),
  });
  return { received, subscription };
};

describe('untilAborted', () => {
  it('ends any number of feeds with one signal, and Node warns of no leak', async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', warn);
    const controller = new AbortController();
    const feeds = Array.from({ length: 30 }, () => subscribeTo(NEVER.pipe(untilAborted(controller.signal))));
    for (const { subscription } of feeds.slice(0, 10)) subscription.unsubscribe();
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
    controller.abort();
    expect(feeds.map(({ received }) => received.length)).toEqual(feeds.map((_, n) => (n < 10 ? 0 : 1)));
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    await new Promise(setImmediate); // Node emits warnings in a later turn.
    process.off('warning', warn);
    expect(warnings).toEqual([]);
  });

  it.each<[string, Observable<number>]>([
    ['a completion', of(1)],
    ['an error', throwError(() => new Error('stop'))],
    ['unsubscribing', NEVER],
  ])('leaves no listener on the signal after %s', (end, source) => {
    const { signal } = new AbortController();
    const { subscription } = subscribeTo(source.pipe(untilAborted(signal)));
    if (end === 'unsubscribing') subscription.unsubscribe();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('the bridges', () => {
  const there = <T>(source: Observable<T>) => toPlatform<T, Platform<T>>(Platform)(source);
  const thereAndBack = <T>(source: Observable<T>) => fromPlatform(there(source));

  it('pass values, the completion, and the same error object', () => {
    const error = new Error('stop');
    const failing$ = concat(
      of(1, 2),
      throwError(() => error),
    );
    expect(subscribeTo(thereAndBack(of(1, 2))).received).toEqual([1, 2, 'complete']);
    const { received } = subscribeTo(thereAndBack(failing$));
    expect(received).toEqual([1, 2, { error }]);
    expect((received[2] as { error: unknown }).error).toBe(error);
  });

  it('keep the values before unsubscribing synchronously, and end the source there', () => {
    let produced = 0;
    const { counts, counted$ } = counted(range(1, 1_000).pipe(tap((n) => (produced = n))));
    expect(subscribeTo(thereAndBack(counted$).pipe(take(3))).received).toEqual([1, 2, 3, 'complete']);
    expect({ produced, ...counts }).toEqual({ produced: 3, all: 1, open: 0 });
  });

  it('return an Observable of RxJS 7 unchanged', () => {
    expect(fromPlatform(NEVER as unknown as PlatformObservable<never>)).toBe(NEVER);
  });

  it('name the missing class, as in a browser without Observable', () => {
    expect(() => toPlatform(undefined as unknown as typeof Platform)).toThrow(
      expect.objectContaining({ code: 'invalid-options', option: 'Kind' }),
    );
  });
});

describe('subscribed', () => {
  it('unsubscribes at the end of the block, even after an exception', () => {
    const { counts, counted$ } = counted(concat(of(1), NEVER));
    const received: number[] = [];
    const block = () => {
      using _ = subscribed(counted$, (value) => received.push(value));
      expect(counts.open).toBe(1);
      throw new RangeError('mine');
    };
    expect(block).toThrow(RangeError);
    expect({ received, ...counts }).toEqual({ received: [1], all: 1, open: 0 });
  });
});

describe('toStore', () => {
  it('subscribes once for all listeners, and keeps the value when the last one leaves', () => {
    const { counts, counted$ } = counted(concat(of('a'), NEVER));
    const store = toStore('none')(counted$);
    expect({ now: store.getSnapshot(), ...counts }).toEqual({ now: 'none', all: 0, open: 0 });
    const leave = [store.subscribe(() => {}), store.subscribe(() => {})];
    expect({ now: store.getSnapshot(), ...counts }).toEqual({ now: 'a', all: 1, open: 1 });
    leave.forEach((each) => each());
    expect({ now: store.getSnapshot(), ...counts }).toEqual({ now: 'a', all: 1, open: 0 });
    store.subscribe(() => {})();
    expect(counts).toEqual({ all: 2, open: 0 });
  });

  it('throws the error to readers until the last listener leaves, then returns the last value and tries again', () => {
    const error = new Error('stop');
    const { counts, counted$ } = counted(
      concat(
        of('a'),
        throwError(() => error),
      ),
    );
    const store = toStore('none')(counted$);
    let calls = 0;
    const leave = [store.subscribe(() => (calls += 1)), store.subscribe(() => (calls += 1))];
    // Only the first listener joined before the end.
    expect({ calls, ...counts }).toEqual({ calls: 2, all: 1, open: 0 });
    expect(() => store.getSnapshot()).toThrow(error);
    leave[0]?.();
    expect(() => store.getSnapshot()).toThrow(error);
    leave[1]?.();
    expect(store.getSnapshot()).toBe('a');
    store.subscribe(() => {});
    expect(counts.all).toBe(2);
    expect(() => store.getSnapshot()).toThrow(error);
  });
});

/** What the examples without a browser print. */
const prints = Object.entries({ untilAborted: /^over$/, subscribed: /^\{"batch":/, toStore: /^live$/ });
const examples = filesIn('src/interop', '.ts').flatMap(commentFencesOf);
const exampleOf = (name: string) => examples.find(({ code }) => code.includes(`{ ${name} } from`))!.code;

describe('the example in the comment of', () => {
  itPrints(
    '%s prints the expected line',
    prints.map(([name, expected]) => ({ name, code: exampleOf(name), expected })),
    { sources: { market: marketBatches$() } },
  );
});
