import type { Observable } from 'rxjs';
import { validated } from '../protocol/validate.js';
import { BoundedReader } from './bounded/bounded-reader.js';
import { boundDefaults, type BoundOptions, type Bounds, boundRules } from './bounded/bounded-queue.js';
import { Ring } from './bounded/ring.js';

/**
 * Converts an Observable to an `AsyncIterable` for `for await`, and limits how many values wait for the loop.
 *
 * Each loop subscribes separately: when it requests its first value, until it ends by `break`, `return` or an
 * exception. Values that arrive while the loop is busy wait in order, within the same bounds as in
 * {@link mergeMapBounded}, which also says when `onDrop` is called.
 *
 * The loop gets the waiting values first. Then it ends if the source completed, and throws if the source errored. It
 * also throws an {@link OverflowError} with `overflow: 'error'`, and what `onDrop` throws. Memory: `capacity` values of
 * at most `capacityBytes` in total.
 * ```ts
 * // source                           --a-b-c-d-------|
 * // toAsyncIterable({ capacity: 1 }) --a------d------|
 * // While the loop is busy with a, c replaces b, and d replaces c.
 * ```
 *
 * The result isn't an Observable, so call the function with an Observable, or pass it last to the standalone `pipe()`
 * of RxJS.
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { toAsyncIterable, tradeFeed$ } from 'rx-trade-feed';
 *
 * const frames = toAsyncIterable({ capacity: 1_000 });
 * for await (const frame of frames(tradeFeed$('market'))) {
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

interface PendingNext<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

// Not a generator: its `return()` would wait until the pending value arrives.
const iterate = <T>(source: Observable<T>, bounds: Bounds<T>): AsyncIterableIterator<T, undefined> => {
  const requests = new Ring<PendingNext<T>>();
  let isOver = false;

  const finishAll = (): void => {
    isOver = true;
    while (requests.size > 0) requests.shift()?.resolve(done);
  };
  const reader = new BoundedReader<T>(source, bounds, {
    get wants() {
      return requests.size > 0;
    },
    next: (value) => requests.shift()?.resolve({ done: false, value }),
    end: (failure) => {
      if (failure !== undefined) requests.shift()?.reject(failure.error);
      finishAll();
    },
  });
  const leave = (): void => {
    finishAll();
    reader.cancel();
  };

  return {
    next: () =>
      new Promise((resolve, reject) => {
        requests.push({ resolve, reject });
        if (isOver) finishAll();
        else reader.pull();
      }),
    return: () => {
      leave();
      return Promise.resolve(done);
    },
    throw: (error: unknown) => {
      leave();
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the caller may pass any value
      return Promise.reject(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};

const done = { done: true, value: undefined } as const;
