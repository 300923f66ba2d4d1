import { type FramesOptions, timeRules, type TimeWindowOptions, wholeMs } from '../operators/window/window-options.js';
import { anObject, durationMs, positiveMs, validated } from '../protocol/rules.js';

/** The windows of the signal `window`. */
export interface WindowSignalOptions extends TimeWindowOptions, FramesOptions {
  /** The length of a window in ms, a whole number. @defaultValue 1 000 */
  readonly lengthMs?: number | undefined;
  /** The most frames that a window holds. More are counted in its `dropped`. @defaultValue 1 000 */
  readonly maxFrames?: number | undefined;
}

/** What the signals are made of, and how long the feed outlives its last component. */
export interface FeedSignalOptions {
  /** How often the signal `stats` is set: `everyMs`, in ms. @defaultValue `{ everyMs: 1_000 }` */
  readonly stats?: { readonly everyMs?: number | undefined } | undefined;
  /** The windows of the signal `window`, which is set when one is over. @defaultValue `{ lengthMs: 1_000, maxFrames: 1_000 }` */
  readonly window?: WindowSignalOptions | undefined;
  /**
   * How long the feed is kept after its last component is destroyed, in ms: a change of page costs no reconnect. 0 closes it at once.
   * @defaultValue 1 000
   */
  readonly lingerMs?: number | undefined;
}

/** {@link FeedSignalOptions}, filled up. */
export interface FeedSignalSettings {
  readonly stats: { readonly everyMs: number };
  readonly window: WindowSignalOptions & { readonly lengthMs: number };
  readonly lingerMs: number;
}

/** The rules of {@link FeedSignalOptions}. */
export const feedSignalRules = { stats: anObject, window: anObject, lingerMs: durationMs };

/** The settings that hold where nothing else is said. */
const defaults = Object.freeze({ everyMs: 1_000, lengthMs: 1_000, maxFrames: 1_000, lingerMs: 1_000 });

/**
 * Fills the options up with the defaults.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const resolveFeedSignals = (options: FeedSignalOptions): FeedSignalSettings => {
  const { everyMs, lengthMs, maxFrames } = defaults;
  const { stats = {}, window = {}, lingerMs = defaults.lingerMs } = validated(options, feedSignalRules);
  return {
    stats: { everyMs, ...validated(stats, { everyMs: positiveMs }, 'stats.') },
    window: { lengthMs, maxFrames, ...validated(window, { lengthMs: wholeMs, ...timeRules }, 'window.') },
    lingerMs,
  };
};
