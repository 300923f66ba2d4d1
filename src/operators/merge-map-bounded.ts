import {
  defer,
  finalize,
  from,
  mergeMap,
  type ObservableInput,
  type ObservedValueOf,
  type OperatorFunction,
  tap,
} from 'rxjs';
import { aFunction, positiveCount, validated } from '../protocol/rules.js';
import { BoundedTurns } from './bounded/bounded-turns.js';
import { boundDefaults, type BoundOptions, boundRules } from './bounded/bounds.js';

/** The options of {@link mergeMapBounded}. */
export interface MergeMapBoundedOptions<T = unknown> extends BoundOptions<T> {
  /** The maximum number of inner Observables that are subscribed to at a time, 1 or more. @defaultValue 1 */
  readonly concurrency?: number | undefined;
}

/**
 * Maps each value to an inner Observable, as `mergeMap` does, and limits how many values wait.
 *
 * The operator never blocks the source. So the socket is always read, even if the work is slow, and the service does not close with `1013`. While
 * `concurrency` inner Observables are active, further values wait in order. Beyond `capacity` or `capacityBytes`, `overflow` decides: by
 * default, the oldest waiting values are dropped.
 *
 * Emits the values of the inner Observables. Completes when the source, all waiting values and all inner Observables are done. Errors at once
 * with the source, an inner Observable, `project`, `bytesOf` or `onDrop`, and with an {@link OverflowError} when `overflow` is `error`.
 *
 * `onDrop` is called once each time the queue overflows, when at most half of the bounds is in use again. During a long overflow, it is called at most
 * once a second. Values that wait at an error or when the consumer unsubscribes are reported as dropped, too, with the reason `ended`. So the
 * number of projected values plus the number of dropped values is the number of received values.
 * Memory: `capacity` values of at most `capacityBytes` in total, and the inner Observables.
 *
 * ```ts
 * // source                                           --a-b-c-d-e-------|
 * // mergeMapBounded(x => work of 5, { capacity: 1 })  -------a----c----e|   c replaces b, and e replaces d
 * ```
 *
 * Any value may be dropped, a `gap` too: apply `frames()` to a stream of events first.
 *
 * @param project - returns the inner Observable, a Promise, or another input of `from`; `index` is the number of projected values before: 0, 1, …
 * @param options - see {@link MergeMapBoundedOptions}
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
      const turns = new BoundedTurns(source, concurrency, bounds);
      return turns.values$.pipe(
        mergeMap((value, index) => from(project(value, index)).pipe(finalize(turns.done))),
        tap({ error: turns.end }), // reports drops before the error
      );
    });
};
