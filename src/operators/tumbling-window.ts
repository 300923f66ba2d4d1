import type { OperatorFunction } from 'rxjs';
import type { AccumulatedWindow, Accumulator, FeedWindow, Settled, TellsOfGaps } from './window/feed-window.js';
import type { ItemOf } from './items/item.js';
import {
  type FramesOptions,
  resolveWindow,
  timeRules,
  type TimeWindowOptions,
  wholeMs,
} from './window/window-options.js';
import { windowsOf } from './window/windows-of.js';

/** How long the windows of `tumblingWindow` are. */
export interface TumblingWindowOptions extends TimeWindowOptions {
  /** The length of a window in ms, a whole number. Each begins where the one before ends. */
  readonly lengthMs: number;
}

/**
 * Cuts a feed into windows of `lengthMs` that know about gaps.
 *
 * Each item falls in one window, by its own time, not by the time at which it comes here: so a relay, a worker and a recording give
 * the same windows as the feed itself. Emits each window when its time is over, whether or not something fell in it, as a {@link FeedWindow}; or,
 * with `seed` and `add`, as an {@link AccumulatedWindow} that holds no items. Time goes by the clock; over a source that sends {@link Watermark}s,
 * by these alone; over a recording, by its events. A window that an outage reaches into has
 * `complete: false` and the `gaps`; so has a first one that began before the feed opened, one that dropped items, and one that ended early.
 * More than 10 000 empty windows that end in the same moment (the clock jumped, a recorded time is wrong) are emitted as one, with
 * `complete: false`, from the start of the first to the end of the last.
 * When the source completes or errors, it emits the open window first, then does the same.
 *
 * Holds at most `maxFrames` items, with their bytes; with an accumulator, what that holds. Besides, the gaps of the open window.
 *
 * ```ts
 * // - is 100 ms; o: opened, with the gap; x: disconnected
 * // source              oa--b--------x--------o-c------
 * // lengthMs: 1000      ----------U---------V---------W
 * // U: a and b, complete; V: nothing, with the gap so far; W: c, with the gap
 * ```
 *
 * @param options - `lengthMs`, and what {@link TimeWindowOptions} and {@link FramesOptions} or {@link Accumulator} name; durations in ms
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
  options: TumblingWindowOptions & Accumulator<ItemOf<Settled<E>>, S>,
): OperatorFunction<TellsOfGaps<E>, AccumulatedWindow<S>>;
export function tumblingWindow<E>(
  options: TumblingWindowOptions & FramesOptions,
): OperatorFunction<TellsOfGaps<E>, FeedWindow<ItemOf<Settled<E>>>>;
export function tumblingWindow(options: TumblingWindowOptions): OperatorFunction<unknown, unknown> {
  const { lengthMs, align, allowedLatenessMs, scheduler, contents } = resolveWindow(
    options,
    { lengthMs: wholeMs },
    timeRules,
  );
  return windowsOf({ lengthMs, everyMs: lengthMs, align, allowedLatenessMs }, contents, scheduler);
}
