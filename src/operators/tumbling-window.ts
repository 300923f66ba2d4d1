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

/** The options of {@link tumblingWindow}. */
export interface TumblingWindowOptions extends TimeWindowOptions {
  /** The duration of a window in ms, a whole number. Each window begins when the one before ends. */
  readonly lengthMs: number;
}

/**
 * Groups the items of a feed into windows of `lengthMs`, and reports gaps in each window.
 *
 * Each item belongs to one window, by the time of the item, not by when it got here. So you get the same windows from a
 * relay, a worker and a log as from the feed itself. Emits each window as a {@link FeedWindow} when its time is over,
 * even if it's empty. Pass `seed` and `add` to get an {@link AccumulatedWindow}: a value you compute instead of the
 * items.
 *
 * The clock moves the time. If the source sends a {@link Watermark}, only watermarks do; in a log, its records do.
 *
 * Pass `by` to get one window for each key that had items, with its {@link WindowKey}, in the order of their first
 * items. Errors when `by` or `add` throws.
 *
 * If an outage overlaps a window, the window has `complete: false` and the `gaps`. `complete` is also `false` if it
 * began before the feed was complete, dropped items, got a late item of an earlier window, or ended early: see its
 * `reason`. If more than 10 000 empty windows end at once (the clock jumped, or a recorded time is wrong), you get one
 * incomplete window for all of them. When the source completes or errors, the open window comes out first.
 *
 * Memory: at most `maxFrames` items and their bytes, or the value of the accumulator; and the gaps of the open window.
 * ```ts
 * // - is 100 ms; o: opened; x: disconnected
 * // source              oa--b--------x--------o-c------
 * // lengthMs: 1000      ----------U---------V---------W
 * // U: a and b, complete; V: empty, with the gap so far; W: c, with the whole
 * // gap, which comes before c
 * ```
 *
 * @param options - see {@link TumblingWindowOptions}, {@link KeyOptions}, and {@link FramesOptions} or
 *   {@link Accumulator}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(
 *     tumblingWindow({
 *       lengthMs: 1_000,
 *       seed: () => 0,
 *       add: (bytes, frame) => bytes + frame.data.length,
 *     }),
 *   )
 *   .subscribe(({ value, complete }) =>
 *     console.log(complete ? `${value} bytes` : `at least ${value} bytes`),
 *   );
 * ```
 */
export function tumblingWindow<E, S, K>(
  options: TumblingWindowOptions & KeyOptions<ItemOf<NotInferred<E>>, K> & Accumulator<ItemOf<NotInferred<E>>, S>,
): OperatorFunction<WindowSource<E>, AccumulatedWindow<S> & WindowKey<K>>;
export function tumblingWindow<E, K>(
  options: TumblingWindowOptions & KeyOptions<ItemOf<NotInferred<E>>, K> & FramesOptions,
): OperatorFunction<WindowSource<E>, FeedWindow<ItemOf<NotInferred<E>>> & WindowKey<K>>;
export function tumblingWindow<E, S>(
  options: TumblingWindowOptions & Accumulator<ItemOf<NotInferred<E>>, S>,
): OperatorFunction<WindowSource<E>, AccumulatedWindow<S>>;
export function tumblingWindow<E>(
  options: TumblingWindowOptions & FramesOptions,
): OperatorFunction<WindowSource<E>, FeedWindow<ItemOf<NotInferred<E>>>>;
export function tumblingWindow(options: TumblingWindowOptions): OperatorFunction<unknown, unknown> {
  return timeWindows(options, { lengthMs: integerMs });
}
