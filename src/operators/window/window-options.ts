import { asyncScheduler, type SchedulerLike } from 'rxjs';
import {
  aFunction,
  aScheduler,
  checkRequired,
  durationMs,
  oneOf,
  positiveCount,
  type Rule,
  validated,
} from '../../protocol/rules.js';
import type { Accumulator } from './feed-window.js';
import { accumulated, framesUpTo, type WindowContents } from './window-contents.js';

/** How a window of time is laid out and timed, whatever it holds. */
export interface TimeWindowOptions {
  /**
   * Where windows begin: at the multiples of their distance since 1970 UTC, or with the first opening of the feed (if it was open
   * before, with the first event). @defaultValue `'epoch'`
   */
  readonly align?: 'epoch' | 'start' | undefined;
  /**
   * How long a window stays open after its end for items that come late, in ms. For a source that gives events out of order; it delays each
   * window by as much. @defaultValue 0
   */
  readonly allowedLatenessMs?: number | undefined;
  /** Closes the windows that no event closes. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** How many items a window holds. */
export interface FramesOptions {
  /** The most items that one window holds. More are counted in `dropped`. @defaultValue 1 000 000 */
  readonly maxFrames?: number | undefined;
}

/** What may stand in the options of a window. */
export type AnyWindowOptions<T> = TimeWindowOptions & FramesOptions & Partial<Accumulator<T, unknown>>;

/** A time that windows can be counted by. */
export const wholeMs: Rule = { allowed: 'a whole number of ms, 1 or more', is: positiveCount.is };

/** The rules of {@link TimeWindowOptions} and {@link FramesOptions}. */
export const timeRules = {
  maxFrames: positiveCount,
  align: oneOf('epoch', 'start'),
  allowedLatenessMs: durationMs,
  scheduler: aScheduler,
};

/** What holds where nothing else is said. */
export const windowDefaults = Object.freeze({
  align: 'epoch',
  allowedLatenessMs: 0,
  scheduler: asyncScheduler,
  maxFrames: 1_000_000,
} as const);

/**
 * Checks the options of a window and fills them up.
 *
 * @param required - the rules of what must be given
 * @param optional - the rules of what may be given, besides what every window knows
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const resolveWindow = <T, O extends AnyWindowOptions<T>>(
  given: O,
  required: Readonly<Record<string, Rule>>,
  optional: Readonly<Record<string, Rule>>,
): O & typeof windowDefaults & { readonly contents: WindowContents<T, unknown, unknown> } => {
  const { seed, add } = Object(given) as O;
  const isAccumulating = seed !== undefined || add !== undefined;
  const { maxFrames: _holdsNone, ...alike } = optional;
  const needed = isAccumulating ? { ...required, seed: aFunction, add: aFunction } : required;
  const rules = { ...needed, ...(isAccumulating ? alike : optional) };
  const options = { ...windowDefaults, ...validated<object>(given, rules) } as O & typeof windowDefaults;
  checkRequired(options, needed);
  const accumulator = options as Accumulator<T, unknown>;
  const contents = isAccumulating ? accumulated(accumulator) : framesUpTo<T>(options.maxFrames);
  return { ...options, contents: contents as WindowContents<T, unknown, unknown> };
};
