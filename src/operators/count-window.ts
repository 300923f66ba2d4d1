import { defer, type OperatorFunction, type SchedulerLike } from 'rxjs';
import { aScheduler, checkRequired, positiveCount } from '../protocol/rules.js';
import { CountWindowCollector } from './window/count-window-collector.js';
import type { AccumulatedWindow, Accumulator, FeedWindow, WindowSource } from './window/feed-window.js';
import { collect$ } from './timing/collect.js';
import type { ItemOf, NotInferred } from './items/item.js';
import { resolveWindow } from './window/window-options.js';

/** The options of {@link countWindow}. */
export interface CountWindowOptions {
  /** The clock for items without a time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Groups the items of a feed into windows of `n` items, and reports gaps in each window.
 *
 * Emits a {@link FeedWindow} at every `n`-th item. With `seed` and `add`, emits an {@link AccumulatedWindow}, which has a computed value instead of
 * the items. `start` and `end` are the times of the first and the last item. A gap belongs to the window that is being filled, even if it is
 * still empty; that window has `complete: false`. Without items, no window is emitted.
 * When the source completes or errors, the started window, if any, is emitted first, with `complete: false`.
 *
 * Memory: at most `n` items, with their bytes, or the value of the accumulator; and the gaps since the last window.
 *
 * ```ts
 * // o: opened, with the gap; x: disconnected
 * // source              o-a--b--c--x----o--d--
 * // countWindow(2)      -----U-------------V--
 * // U: a and b, complete; V: c and d, with the gap
 * ```
 *
 * @param n - the number of items in a window, a whole number
 * @param options - see {@link CountWindowOptions} and {@link Accumulator}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { countWindow, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(countWindow(1_000))
 *   .subscribe(({ start, end, complete }) => console.log(`1000 frames in ${end - start} ms`, complete));
 * ```
 */
export function countWindow<E, S>(
  n: number,
  options: CountWindowOptions & Accumulator<ItemOf<NotInferred<E>>, S>,
): OperatorFunction<WindowSource<E>, AccumulatedWindow<S>>;
export function countWindow<E>(
  n: number,
  options?: CountWindowOptions,
): OperatorFunction<WindowSource<E>, FeedWindow<ItemOf<NotInferred<E>>>>;
export function countWindow(n: number, options: CountWindowOptions = {}): OperatorFunction<unknown, unknown> {
  checkRequired({ n }, { n: positiveCount });
  const { scheduler, contents } = resolveWindow(options, {}, { scheduler: aScheduler });
  return (source) =>
    defer(() =>
      collect$(source, new CountWindowCollector<unknown, unknown, unknown>(n, contents, () => scheduler.now())),
    );
}
