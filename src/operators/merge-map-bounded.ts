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

/** How much of the work goes on at a time, and how much may wait for it. */
export interface MergeMapBoundedOptions<T = unknown> extends BoundOptions<T> {
  /** How many inner Observables are subscribed to at a time, 1 or more. @defaultValue 1 */
  readonly concurrency?: number | undefined;
}

/**
 * Maps each value to an inner Observable, as `mergeMap` does, and bounds what waits for its turn.
 *
 * The source is never held up, so the socket is drained however slow the work is, and the service has no reason to close with
 * `1013`. While `concurrency` inner Observables are at work, values wait in order; beyond `capacity` or `capacityBytes` they are
 * dropped. Emits what the inner ones emit. Completes when the source, all that waited and all inner ones are done. Errors at
 * once with the source, an inner one, `project` or `onDrop`, and with an {@link OverflowError} when `overflow` is `error`.
 *
 * `onDrop` is called once per crossing of the bounds, when at most half of them is in use again. A crossing that lasts is reported
 * at the next drop, once a second has gone by. What still waits at an error, or when the consumer unsubscribes, is reported as dropped too, with the
 * reason `ended`. So what was projected and what was dropped add up to what came.
 * Holds `capacity` values of at most `capacityBytes` together, and the inner Observables.
 *
 * ```ts
 * // source                                           --a-b-c-d-e-------|
 * // mergeMapBounded(x => work of 5, { capacity: 1 })  -------a----c----e|   c takes the place of b, and e that of d
 * ```
 *
 * Any value may be dropped, a `gap` too: take the frames out of a stream of events first.
 *
 * @param project - makes the inner Observable, or a Promise or the like; `index` counts what was projected: 0, 1, …
 * @param options - see {@link MergeMapBoundedOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { range } from 'rxjs';
 * import { mergeMapBounded } from 'rx-trade-feed';
 *
 * const store = async (n: number) => new Promise((resolve) => setTimeout(resolve, 10, n));
 *
 * range(1, 1_000) // at once
 *   .pipe(mergeMapBounded(store, { capacity: 2, onDrop: ({ dropped }) => console.log(`${dropped} dropped`) }))
 *   .subscribe(console.log); // 1, 997 dropped, 999, 1000
 * ```
 */
export const mergeMapBounded = <T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  options: MergeMapBoundedOptions<NoInfer<T>> = {},
): OperatorFunction<T, ObservedValueOf<O>> => {
  validated({ project }, { project: aFunction });
  const given = validated(options, { ...boundRules, concurrency: positiveCount });
  const { concurrency, ...bounds } = { ...boundDefaults, concurrency: 1, ...given };

  return (source) =>
    defer(() => {
      const turns = new BoundedTurns(source, concurrency, bounds);
      return turns.values$.pipe(
        mergeMap((value, index) => from(project(value, index)).pipe(finalize(turns.done))),
        tap({ error: turns.end }), // drops are told before the error
      );
    });
};
