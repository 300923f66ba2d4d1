import type { OperatorFunction } from 'rxjs';
import type { ItemOf, NotInferred } from './items/item.js';
import type { AccumulatedWindow, Accumulator, FeedWindow, WindowSource } from './window/feed-window.js';
import {
  type FramesOptions,
  resolveWindow,
  timeRules,
  type TimeWindowOptions,
  integerMs,
} from './window/window-options.js';
import { windowsOf } from './window/windows-of.js';

/** The options of {@link tumblingWindow}. */
export interface TumblingWindowOptions extends TimeWindowOptions {
  /** The duration of a window in ms, a whole number. Each window begins when the one before ends. */
  readonly lengthMs: number;
}

/**
 * Groups the items of a feed into windows of `lengthMs`, and reports gaps in each window.
 *
 * Each item belongs to one window, by the time of the item, not by the time of its arrival here. So a relay, a worker and a recording produce
 * the same windows as the feed itself. Emits each window when its time is over, also an empty one, as a {@link FeedWindow}. With `seed` and `add`,
 * emits an {@link AccumulatedWindow}, which has a computed value instead of the items.
 *
 * The clock moves the time. If the source sends a {@link Watermark}, only watermarks move the time; in a recording, its events do.
 *
 * A window that overlaps an outage has `complete: false` and the `gaps`. `complete` is also `false` if the window began before the feed opened,
 * dropped items, contains a late item of an earlier window, or ended early.
 * More than 10 000 empty windows can end at once if the clock jumped, or if a recorded time is wrong. They are emitted as one, with
 * `complete: false`, from the start of the first to the end of the last.
 * When the source completes or errors, the open window is emitted first.
 *
 * Memory: at most `maxFrames` items, with their bytes, or the value of the accumulator; and the gaps of the open window.
 *
 * ```ts
 * // - is 100 ms; o: opened, with the gap; x: disconnected
 * // source              oa--b--------x--------o-c------
 * // lengthMs: 1000      ----------U---------V---------W
 * // U: a and b, complete; V: empty, with the gap so far; W: c, with the gap
 * ```
 *
 * @param options - see {@link TumblingWindowOptions}, and {@link FramesOptions} or {@link Accumulator}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(tumblingWindow({ lengthMs: 1_000, seed: () => 0, add: (bytes, frame) => bytes + frame.data.length }))
 *   .subscribe(({ value, complete }) => console.log(complete ? `${value} bytes` : `at least ${value} bytes`));
 * ```
 */
export function tumblingWindow<E, S>(
  options: TumblingWindowOptions & Accumulator<ItemOf<NotInferred<E>>, S>,
): OperatorFunction<WindowSource<E>, AccumulatedWindow<S>>;
export function tumblingWindow<E>(
  options: TumblingWindowOptions & FramesOptions,
): OperatorFunction<WindowSource<E>, FeedWindow<ItemOf<NotInferred<E>>>>;
export function tumblingWindow(options: TumblingWindowOptions): OperatorFunction<unknown, unknown> {
  const { lengthMs, align, allowedLatenessMs, scheduler, contents } = resolveWindow(
    options,
    { lengthMs: integerMs },
    timeRules,
  );
  return windowsOf({ lengthMs, everyMs: lengthMs, align, allowedLatenessMs }, contents, scheduler);
}
