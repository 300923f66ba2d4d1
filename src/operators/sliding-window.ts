import type { OperatorFunction } from 'rxjs';
import { invalidOption } from '../protocol/rules.js';
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

/** How the windows of `slidingWindow` lie. */
export interface SlidingWindowOptions extends TimeWindowOptions {
  /** The length of a window in ms, a whole number. */
  readonly lengthMs: number;
  /** From the start of a window to the start of the next, in ms: a whole number, at most `lengthMs`. */
  readonly everyMs: number;
}

/**
 * Lays windows of `lengthMs` over a feed, one every `everyMs`, that know about gaps.
 *
 * As `tumblingWindow`, but windows overlap: each item falls in about `lengthMs / everyMs` of them. Each window gathers for itself, so
 * an item costs as many steps as there are windows that it falls in. Emits each window when its time is over; the first ones, up to a
 * full length, began before the feed opened and have `complete: false` (with `align: 'start'` there are none such).
 * When the source completes or errors, it emits the open windows first, oldest first, then does the same.
 *
 * Holds at most `lengthMs / everyMs`, rounded up, times `maxFrames` references; the bytes of each item once. With an accumulator, as many
 * times what that holds.
 *
 * ```ts
 * // - is 100 ms; o: opened
 * // source                            oa-----b----c-----
 * // lengthMs: 1000, everyMs: 500      -----U----V----W--
 * // U: a, incomplete, since it began before the feed opened; V: a and b; W: b and c
 * ```
 *
 * @param options - `lengthMs`, `everyMs`, and what {@link TimeWindowOptions} and {@link FramesOptions} or {@link Accumulator} name
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { slidingWindow, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * // Every second: the frames of the last ten.
 * tradeFeedEvents$('market')
 *   .pipe(slidingWindow({ lengthMs: 10_000, everyMs: 1_000, seed: () => 0, add: (frames) => frames + 1 }))
 *   .subscribe(({ end, value, complete }) => console.log(new Date(end), value / 10, complete));
 * ```
 */
export function slidingWindow<E, S>(
  options: SlidingWindowOptions & Accumulator<ItemOf<Settled<E>>, S>,
): OperatorFunction<TellsOfGaps<E>, AccumulatedWindow<S>>;
export function slidingWindow<E>(
  options: SlidingWindowOptions & FramesOptions,
): OperatorFunction<TellsOfGaps<E>, FeedWindow<ItemOf<Settled<E>>>>;
export function slidingWindow(options: SlidingWindowOptions): OperatorFunction<unknown, unknown> {
  const required = { lengthMs: wholeMs, everyMs: wholeMs };
  const { lengthMs, everyMs, align, allowedLatenessMs, scheduler, contents } = resolveWindow(
    options,
    required,
    timeRules,
  );
  if (everyMs > lengthMs) throw invalidOption('everyMs', `at most lengthMs (${lengthMs})`, everyMs);
  return windowsOf({ lengthMs, everyMs, align, allowedLatenessMs }, contents, scheduler);
}
