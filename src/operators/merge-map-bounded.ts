import {
  defer,
  finalize,
  from,
  mergeMap,
  Observable,
  type ObservableInput,
  type ObservedValueOf,
  type OperatorFunction,
  type Subscriber,
  tap,
} from 'rxjs';
import { aFunction, checkRequired, positiveCount, validated } from '../protocol/validate.js';
import { BoundedReader } from './bounded/bounded-reader.js';
import { boundDefaults, type BoundOptions, type Bounds, boundRules } from './bounded/bounded-queue.js';

/** The options of {@link mergeMapBounded}. */
export interface MergeMapBoundedOptions<T = unknown> extends BoundOptions<T> {
  /** How many inner Observables may run at a time, 1 or more. @defaultValue 1 */
  readonly concurrency?: number | undefined;
}

/**
 * Maps each value to an inner Observable, as `mergeMap` does, and limits how many values wait.
 *
 * It never blocks the source, so the socket is always read, however slow your work is, and the service doesn't close
 * with `1013`. While `concurrency` inner Observables are active, further values wait in order. When the bounds are
 * reached, `overflow` decides: by default, the oldest waiting values are dropped.
 *
 * Emits the values of the inner Observables. Completes when the source, all waiting values and all inner Observables
 * are done. Errors at once with the source, an inner Observable, `project`, `bytesOf` or `onDrop`, and with an
 * {@link OverflowError} when `overflow` is `error`.
 *
 * Calls `onDrop` once per overflow, when the queue is down to half of its bounds, and at most once a second while a
 * long overflow lasts. Values still waiting when the stream errors or you unsubscribe are reported as well, with the
 * reason `ended`: each value you receive is either projected or reported as dropped. Memory: `capacity` values of at
 * most `capacityBytes` in total, and the inner Observables.
 * ```ts
 * // source                                           --a-b-c-d-e-------|
 * // mergeMapBounded(x => work of 5, { capacity: 1 })  -------a----c----e|
 * // c replaces b, and e replaces d
 * ```
 *
 * Any value may be dropped, even a `gap`: apply `frames()` to a stream of events first.
 *
 * @param project - returns the inner Observable, a Promise, or another input of `from`; `index` counts the projected
 *   values: 0, 1, …
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { range } from 'rxjs';
 * import { mergeMapBounded } from 'rx-trade-feed';
 *
 * const store = async (n: number) =>
 *   new Promise((resolve) => setTimeout(resolve, 10, n));
 *
 * range(1, 1_000) // emits synchronously
 *   .pipe(
 *     mergeMapBounded(store, {
 *       capacity: 2,
 *       onDrop: ({ dropped }) => console.log(`${dropped} dropped`),
 *     }),
 *   )
 *   .subscribe(console.log); // 1, 997 dropped, 999, 1000
 * ```
 */
export const mergeMapBounded = <T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  options: MergeMapBoundedOptions<NoInfer<T>> = {},
): OperatorFunction<T, ObservedValueOf<O>> => {
  checkRequired({ project }, { project: aFunction });
  const checked = validated(options, { ...boundRules, concurrency: positiveCount });
  const { concurrency, ...bounds } = { ...boundDefaults, concurrency: 1, ...checked };

  return (source) =>
    defer(() => {
      const { values$, done, end } = startedInTurn(source, concurrency, bounds);
      return values$.pipe(
        mergeMap((value, index) => from(project(value, index)).pipe(finalize(done))),
        tap({ error: end }), // reports drops before the error
      );
    });
};

/** Limits how many values are in work: `values$` emits each when its work may start, `done` says that it's finished. */
const startedInTurn = <T>(source: Observable<T>, concurrency: number, bounds: Bounds<T>) => {
  let active = 0;
  let subscriber: Subscriber<T> | undefined;
  const reader = new BoundedReader<T>(source, bounds, {
    failsAtOnce: true,
    get wants() {
      return active < concurrency;
    },
    // Stryker disable OptionalChaining: there is a subscriber whenever a value arrives. The check is for the type.
    next: (value) => {
      active += 1;
      subscriber?.next(value);
    },
    end: (failure) => {
      if (failure === undefined) subscriber?.complete();
      else subscriber?.error(failure.error);
    },
  });
  // Stryker restore OptionalChaining
  const end = (): void => reader.cancel();
  const values$ = new Observable<T>((values) => {
    subscriber = values;
    // Add it before subscribing, so the queue has ended by the time later teardowns run.
    values.add(end);
    reader.pull();
  });
  const done = (): void => {
    active -= 1;
    reader.pull();
  };
  return { values$, done, end };
};
