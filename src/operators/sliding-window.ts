import type { OperatorFunction } from 'rxjs';
import type { ItemOf, NotInferred } from './items/item.js';
import { integerMs } from './window/contents.js';
import { timeWindows } from './window/time-windows.js';
import type {
  AccumulatedWindow,
  Accumulator,
  FeedWindow,
  FramesOptions,
  KeyOptions,
  TimeWindowOptions,
  WindowKey,
  WindowSource,
} from './window/window.js';

/** The options of {@link slidingWindow}. */
export interface SlidingWindowOptions extends TimeWindowOptions {
  /** The duration of a window in ms, a whole number. */
  readonly lengthMs: number;
  /** From the start of a window to the start of the next, in ms: a whole number, at most `lengthMs`. */
  readonly everyMs: number;
}

/**
 * Groups the items of a feed into overlapping windows of `lengthMs`, one every `everyMs`, and reports gaps in each.
 *
 * Works like `tumblingWindow`, but each item is in about `lengthMs / everyMs` windows and costs a step in each. The
 * first windows began before the feed was complete, so they have `complete: false`; `align: 'start'` avoids them. When the
 * source completes or errors, the open windows come out first, oldest first.
 *
 * Memory: the bytes of each item once, and for each of the `lengthMs / everyMs` open windows `maxFrames` references or
 * the value of its accumulator.
 * ```ts
 * // - is 100 ms; o: opened
 * // source                            oa-----b----c-----
 * // lengthMs: 1000, everyMs: 500      -----U----V----W--
 * // U: a, incomplete because the feed began in it; V: a and b; W: b and c
 * ```
 *
 * @param options - see {@link SlidingWindowOptions}, {@link KeyOptions}, and {@link FramesOptions} or
 *   {@link Accumulator}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { slidingWindow, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * // Every second: the number of frames in the last ten seconds.
 * tradeFeedEvents$('market')
 *   .pipe(
 *     slidingWindow({
 *       lengthMs: 10_000,
 *       everyMs: 1_000,
 *       seed: () => 0,
 *       add: (frames) => frames + 1,
 *     }),
 *   )
 *   .subscribe(({ end, value, complete }) =>
 *     console.log(new Date(end), value / 10, complete),
 *   );
 * ```
 */
export function slidingWindow<E, S, K>(
  options: SlidingWindowOptions & KeyOptions<ItemOf<NotInferred<E>>, K> & Accumulator<ItemOf<NotInferred<E>>, S>,
): OperatorFunction<WindowSource<E>, AccumulatedWindow<S> & WindowKey<K>>;
export function slidingWindow<E, K>(
  options: SlidingWindowOptions & KeyOptions<ItemOf<NotInferred<E>>, K> & FramesOptions,
): OperatorFunction<WindowSource<E>, FeedWindow<ItemOf<NotInferred<E>>> & WindowKey<K>>;
export function slidingWindow<E, S>(
  options: SlidingWindowOptions & Accumulator<ItemOf<NotInferred<E>>, S>,
): OperatorFunction<WindowSource<E>, AccumulatedWindow<S>>;
export function slidingWindow<E>(
  options: SlidingWindowOptions & FramesOptions,
): OperatorFunction<WindowSource<E>, FeedWindow<ItemOf<NotInferred<E>>>>;
export function slidingWindow(options: SlidingWindowOptions): OperatorFunction<unknown, unknown> {
  return timeWindows(options, { lengthMs: integerMs, everyMs: integerMs });
}
