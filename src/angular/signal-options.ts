import { checkFreshness, type FreshnessOptions } from '../operators/freshness.js';
import { integerMs, timeRules } from '../operators/window/contents.js';
import type { FramesOptions, TimeWindowOptions } from '../operators/window/window.js';
import { anObject, durationMs, positiveMs, validated } from '../protocol/validate.js';

/** The options of the signal `window`. */
export interface WindowSignalOptions extends TimeWindowOptions, FramesOptions {
  /** The length of a window in ms, an integer. @defaultValue 1 000 */
  readonly lengthMs?: number | undefined;
  /** The maximum number of frames in a window. Further frames are counted in `dropped`. @defaultValue 1 000 */
  readonly maxFrames?: number | undefined;
}

/** The options of the signals, and of the time that the feed stays open without a component. */
export interface FeedSignalOptions {
  /** How often the signal `stats` is set: `everyMs`, in ms. @defaultValue `{ everyMs: 1_000 }` */
  readonly stats?: { readonly everyMs?: number | undefined } | undefined;
  /** The windows of the signal `window`, set at the end of each. @defaultValue `{ lengthMs: 1_000, maxFrames: 1_000 }` */
  readonly window?: WindowSignalOptions | undefined;
  /**
   * When the newest frame is too old: the options of `freshness`, for the signal `freshness`. @defaultValue none: the
   * signal stays `undefined`
   */
  readonly freshness?: FreshnessOptions | undefined;
  /**
   * How long the feed stays open after its last component is destroyed, in ms, so that a change of route needs no
   * reconnect. 0 closes it at once.
   * @defaultValue 1 000
   */
  readonly lingerMs?: number | undefined;
}

/** The validation rules of {@link FeedSignalOptions}. */
export const feedSignalRules = { stats: anObject, window: anObject, freshness: anObject, lingerMs: durationMs };

/**
 * Validates the options and adds the defaults.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const resolveFeedSignals = (options: FeedSignalOptions) => {
  const { stats = {}, window = {}, freshness, lingerMs = 1_000 } = validated(options, feedSignalRules);
  if (freshness) checkFreshness(freshness, 'freshness.');
  return {
    stats: { everyMs: 1_000, ...validated(stats, { everyMs: positiveMs }, 'stats.') },
    window: { ...windowDefaults, ...validated(window, { lengthMs: integerMs, ...timeRules }, 'window.') },
    freshness,
    lingerMs,
  };
};

const windowDefaults = { lengthMs: 1_000, maxFrames: 1_000 };

/** The {@link FeedSignalOptions} with all defaults. */
export type FeedSignalSettings = ReturnType<typeof resolveFeedSignals>;
