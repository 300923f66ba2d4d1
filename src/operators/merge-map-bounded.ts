import { defer, finalize, from, mergeMap, Observable, type ObservableInput, type ObservedValueOf } from 'rxjs';
import { type OperatorFunction, type Subscriber, tap } from 'rxjs';
import { aFunction, positiveCount, validated } from '../protocol/validate.js';
import { BoundedReader } from './bounded/bounded-reader.js';
import { boundDefaults, type BoundOptions, type Bounds, boundRules } from './bounded/bounded-queue.js';

/** The options of {@link mergeMapBounded}. */
export interface MergeMapBoundedOptions<T = unknown> extends BoundOptions<T> {
  /** The maximum number of inner Observables that are subscribed to at a time, 1 or more. @defaultValue 1 */
  readonly concurrency?: number | undefined;
}

/**
 * Maps each value to an inner Observable, as `mergeMap` does, and limits how many values wait.
 *
 * The operator never blocks the source. So the socket is always read, even if the work is slow, and the service does
 * not close with `1013`. While `concurrency` inner Observables are active, further values wait in order; beyond the
 * bounds, `overflow` decides: by default, the oldest waiting values are dropped.
 *
 * Emits the values of the inner Observables. Completes when the source, all waiting values and all inner Observables
 * are done. Errors at once with the source, an inner Observable, `project`, `bytesOf` or `onDrop`, and with an
 * {@link OverflowError} when `overflow` is `error`.
 *
 * `onDrop` is called once for each overflow, when at most half of the bounds is in use again, and during a long
 * overflow at most once a second. Values that wait at an error or when the consumer unsubscribes are reported as
 * dropped, too, with the reason `ended`: each received value is either projected or dropped. Memory: `capacity` values
 * of at most `capacityBytes` in total, and the inner Observables.
 * ```ts
 * // source                                           --a-b-c-d-e-------|
 * // mergeMapBounded(x => work of 5, { capacity: 1 })  -------a----c----e|   c replaces b, and e replaces d
 * ```
 *
 * Any value may be dropped, a `gap` too: apply `frames()` to a stream of events first.
 *
 * @param project - returns the inner Observable, a Promise, or another input of `from`; `index` is the number of
 *   projected values before: 0, 1, …
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { range } from 'rxjs';
 * import { mergeMapBounded } from 'rx-trade-feed';
 *
 * const store = async (n: number) => new Promise((resolve) => setTimeout(resolve, 10, n));
 *
 * range(1, 1_000) // emits synchronously
 *   .pipe(mergeMapBounded(store, { capacity: 2, onDrop: ({ dropped }) => console.log(`${dropped} dropped`) }))
 *   .subscribe(console.log); // 1, 997 dropped, 999, 1000
 * ```
 */
export const mergeMapBounded = <T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  options: MergeMapBoundedOptions<NoInfer<T>> = {},
): OperatorFunction<T, ObservedValueOf<O>> => {
  validated({ project }, { project: aFunction });
  const checked = validated(options, { ...boundRules, concurrency: positiveCount });
  const { concurrency, ...bounds } = { ...boundDefaults, concurrency: 1, ...checked };

  return (source) =>
    defer(() => {
      const { values$, done, end } = turns(source, concurrency, bounds);
      return values$.pipe(
        mergeMap((value, index) => from(project(value, index)).pipe(finalize(done))),
        tap({ error: end }), // reports drops before the error
      );
    });
};

/** Starts a limited number of values at a time: `values$` emits each when its turn begins, and `done` ends a turn. */
const turns = <T>(source: Observable<T>, concurrency: number, bounds: Bounds<T>) => {
  let active = 0;
  let subscriber: Subscriber<T> | undefined;
  const reader = new BoundedReader<T>(source, bounds, {
    failsAtOnce: true,
    get wants() {
      return active < concurrency;
    },
    next: (value) => {
      active += 1;
      subscriber?.next(value);
    },
    end: (failure) => {
      if (failure === undefined) subscriber?.complete();
      else subscriber?.error(failure.error);
    },
  });
  const end = (): void => reader.cancel();
  const values$ = new Observable<T>((values) => {
    subscriber = values;
    // Added before subscribing, so that the queue has ended when later teardowns run.
    values.add(end);
    reader.pull();
  });
  const done = (): void => {
    active -= 1;
    reader.pull();
  };
  return { values$, done, end };
};
