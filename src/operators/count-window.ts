import { defer, type OperatorFunction, type SchedulerLike } from 'rxjs';
import { aScheduler, checkRequired, positiveCount } from '../protocol/rules.js';
import { CountBook } from './window/count-book.js';
import type { AccumulatedWindow, Accumulator, FeedWindow, Settled, TellsOfGaps } from './window/feed-window.js';
import { gathered } from './timing/collect.js';
import type { ItemOf } from './items/item.js';
import { resolveWindow } from './window/window-options.js';

/** What `countWindow` knows besides the number. */
export interface CountWindowOptions {
  /** Says how late it is when an item comes that does not know its time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Cuts a feed into windows of `n` items that know about gaps.
 *
 * Emits a {@link FeedWindow} with every `n`-th item; or, with `seed` and `add`, an {@link AccumulatedWindow} that holds no items.
 * `start` and `end` are the times of its first and its last item. A gap counts for the window that is being filled, also when it has no
 * item yet: that window has `complete: false`. Nothing is emitted while no item comes.
 * When the source completes or errors, it emits what has been gathered, if anything, with `complete: false`, then does the same.
 *
 * Holds at most `n` items, with their bytes; with an accumulator, what that holds. Besides, the gaps since the last window.
 *
 * ```ts
 * // o: opened, with the gap; x: disconnected
 * // source              o-a--b--c--x----o--d--
 * // countWindow(2)      -----U-------------V--
 * // U: a and b, complete; V: c and d, with the gap
 * ```
 *
 * @param n - items in a window, a whole number
 * @param options - what {@link CountWindowOptions} and {@link Accumulator} name
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
  options: CountWindowOptions & Accumulator<ItemOf<Settled<E>>, S>,
): OperatorFunction<TellsOfGaps<E>, AccumulatedWindow<S>>;
export function countWindow<E>(
  n: number,
  options?: CountWindowOptions,
): OperatorFunction<TellsOfGaps<E>, FeedWindow<ItemOf<Settled<E>>>>;
export function countWindow(n: number, options: CountWindowOptions = {}): OperatorFunction<unknown, unknown> {
  checkRequired({ n }, { n: positiveCount });
  const { scheduler, contents } = resolveWindow(options, {}, { scheduler: aScheduler });
  return (source) =>
    defer(() => gathered(source, new CountBook<unknown, unknown, unknown>(n, contents, () => scheduler.now())));
}
