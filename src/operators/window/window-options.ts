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

/** The options that `tumblingWindow` and `slidingWindow` share. */
export interface TimeWindowOptions {
  /**
   * When windows begin. `'epoch'`: at multiples of `everyMs` (`tumblingWindow`: `lengthMs`) since 1970 UTC. `'start'`: when the feed first
   * opens, or at the first event if the feed is already open. @defaultValue `'epoch'`
   */
  readonly align?: 'epoch' | 'start' | undefined;
  /**
   * How long a window waits for late items after its end, in ms. For a source that emits events out of order. It delays each window by this time.
   * @defaultValue 0
   */
  readonly allowedLatenessMs?: number | undefined;
  /** The clock that closes windows when no event closes them. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The limit of items in a window. */
export interface FramesOptions {
  /** The maximum number of items in a window. Further items are counted in `dropped`. @defaultValue 1 000 000 */
  readonly maxFrames?: number | undefined;
}

/** All options that a window may have. */
export type AnyWindowOptions<T> = TimeWindowOptions & FramesOptions & Partial<Accumulator<T, unknown>>;

/** The rule of the length of a window, and of the distance between windows. */
export const integerMs: Rule = { allowed: 'a whole number of ms, 1 or more', is: positiveCount.is };

/** The rules of {@link TimeWindowOptions} and {@link FramesOptions}. */
export const timeRules = {
  maxFrames: positiveCount,
  align: oneOf('epoch', 'start'),
  allowedLatenessMs: durationMs,
  scheduler: aScheduler,
};

/** The defaults of the options. */
export const windowDefaults = Object.freeze({
  align: 'epoch',
  allowedLatenessMs: 0,
  scheduler: asyncScheduler,
  maxFrames: 1_000_000,
} as const);

/**
 * Checks the options of a window, and adds the defaults.
 *
 * @param required - the rules of the required options
 * @param optional - the rules of the optional ones
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const resolveWindow = <T, O extends AnyWindowOptions<T>>(
  input: O,
  required: Readonly<Record<string, Rule>>,
  optional: Readonly<Record<string, Rule>>,
): O & typeof windowDefaults & { readonly contents: WindowContents<T, unknown, unknown> } => {
  const { seed, add } = Object(input) as O;
  const isAccumulating = seed !== undefined || add !== undefined;
  const { maxFrames: _unused, ...optionalOfAccumulator } = optional;
  const needed = isAccumulating ? { ...required, seed: aFunction, add: aFunction } : required;
  const rules = { ...needed, ...(isAccumulating ? optionalOfAccumulator : optional) };
  const options = { ...windowDefaults, ...validated<object>(input, rules) } as O & typeof windowDefaults;
  checkRequired(options, needed);
  const accumulator = options as Accumulator<T, unknown>;
  const contents = isAccumulating ? accumulated(accumulator) : framesUpTo<T>(options.maxFrames);
  return { ...options, contents: contents as WindowContents<T, unknown, unknown> };
};
