import type { Observable } from 'rxjs';
import { validated } from '../protocol/rules.js';
import { BoundedReader } from './bounded/bounded-reader.js';
import { boundDefaults, type BoundOptions, type Bounds, boundRules } from './bounded/bounds.js';
import { Ring } from './bounded/ring.js';

/**
 * Makes an Observable readable with `for await`, and bounds what waits for the loop.
 *
 * Each loop subscribes for itself, when it asks for its first value, and unsubscribes when it is left by `break`, `return` or an
 * exception. Values that come while the loop is busy wait in order; beyond `capacity` or `capacityBytes` they are dropped. When the source
 * completes, the loop ends; when it errors, the loop throws that error; either way after the values that wait. With `overflow: 'error'` an
 * {@link OverflowError} ends it in the same way, and so does what `onDrop` throws.
 *
 * `onDrop` is called as {@link mergeMapBounded} calls it.
 * Holds `capacity` values of at most `capacityBytes` together.
 *
 * ```ts
 * // source                            --a-b-c-d-------|
 * // toAsyncIterable({ capacity: 1 })  --a------d------|   while the loop is busy with a, c takes the place of b, and d that of c
 * ```
 *
 * The result is no Observable, so it is called with one, or comes last in RxJS' standalone `pipe()`.
 *
 * @param options - see {@link BoundOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { toAsyncIterable, tradeFeed$ } from 'rx-trade-feed';
 *
 * for await (const frame of toAsyncIterable({ capacity: 1_000 })(tradeFeed$('market'))) {
 *   await new Promise((resolve) => setTimeout(resolve, 10)); // slow work
 *   console.log(frame.text());
 * }
 * ```
 */
export const toAsyncIterable = <B = unknown>(
  options: BoundOptions<B> = {},
): (<T extends B>(source: Observable<T>) => AsyncIterable<T>) => {
  const bounds = { ...boundDefaults, ...validated(options, boundRules) };
  return (source) => ({ [Symbol.asyncIterator]: () => iterate(source, bounds) });
};

interface Asked<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

// No generator: `return()` of one waits for the value that it waits for.
const iterate = <T>(source: Observable<T>, bounds: Bounds<T>): AsyncIterableIterator<T, undefined> => {
  const asked = new Ring<Asked<T>>();
  let isOver = false;

  const answerAll = (): void => {
    isOver = true;
    while (asked.size > 0) asked.shift()?.resolve(done);
  };
  const reader = new BoundedReader<T>(source, bounds, {
    get wants() {
      return asked.size > 0;
    },
    next: (value) => {
      asked.shift()?.resolve({ done: false, value });
    },
    end: (failure) => {
      if (failure !== undefined) asked.shift()?.reject(failure.error);
      answerAll();
    },
  });
  const leave = (): void => {
    answerAll();
    reader.cancel();
  };

  return {
    next: () =>
      new Promise((resolve, reject) => {
        asked.push({ resolve, reject });
        if (isOver) answerAll();
        else reader.pull();
      }),
    return: () => {
      leave();
      return Promise.resolve(done);
    },
    throw: (error: unknown) => {
      leave();
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- whatever the caller throws in
      return Promise.reject(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};

const done = { done: true, value: undefined } as const;
