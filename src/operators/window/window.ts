import type { SchedulerLike } from 'rxjs';
import type { Disconnected, Gap } from '../../protocol/event.js';

/**
 * A window with its items.
 *
 * `tumblingWindow` and `slidingWindow` emit windows of a fixed duration, `countWindow` of a fixed number of items.
 */
export interface FeedWindow<T> extends WindowFacts {
  /** The items of the window as they arrived: frames, or values created from them. At most `maxFrames`. */
  readonly frames: readonly T[];
  /** How many items aren't in `frames` because there were more than `maxFrames`. */
  readonly dropped: number;
}

/** A window with the result of an accumulator instead of its items. */
export interface AccumulatedWindow<S> extends WindowFacts {
  /** What `seed` returned, after calling `add` with each item. */
  readonly value: S;
}

/** The fields of every window. */
export interface WindowFacts {
  readonly type: 'window';
  /** When the window begins, in epoch ms, inclusive. For `countWindow`: the time of the first item. */
  readonly start: number;
  /**
   * When the window ends, in epoch ms, exclusive. For `countWindow`: the time of the last item. If it replaces more
   * than 10 000 empty windows: the end of the last.
   */
  readonly end: number;
  /** How many items belong to the window, including dropped ones. */
  readonly count: number;
  /**
   * The outages that overlap the window, in full: they may begin before it and end after it. The gap of an ongoing
   * outage ends with the window, or at the last known time if the window ended early.
   */
  readonly gaps: readonly Gap[];
  /** `true` if nothing is known to be missing. If it's `false`, a sum over the window may be too low. */
  readonly complete: boolean;
  /** Why the window isn't complete: the first {@link IncompleteReason} that applies. Absent if it's complete. */
  readonly reason?: IncompleteReason;
}

/**
 * Says why a window isn't complete. `'gap'`: an outage overlaps it, see its `gaps`. `'late'`: it got a late item of an
 * earlier window. `'overflow'`: it had more than `maxFrames` items. `'jump'`: it replaces more than 10 000 empty
 * windows. `'partial'`: it began before the feed was complete, or the source ended before it was over.
 */
export type IncompleteReason = 'gap' | 'late' | 'overflow' | 'jump' | 'partial';

/** The fields that the option `by` adds to each window. */
export interface WindowKey<K> {
  /** The key of all its items. */
  readonly key: K;
  /** How many items of the same time had a key beyond `maxKeys`. They aren't in any window. */
  readonly beyondMaxKeys: number;
}

/** Computes a value from the items of a window. */
export interface Accumulator<T, S> {
  /** Returns the initial value. Called once per window, so it may return an object that `add` changes. */
  readonly seed: () => S;
  /** Returns the value with an item added. Items you store in the value stay in memory, so prefer numbers. */
  readonly add: (state: S, item: T) => S;
}

/**
 * The source of a window: `E`, if `E` includes the events that report outages. Windows over frames alone don't compile,
 * because every window would look complete.
 */
export type WindowSource<E> = Disconnected extends E
  ? E
  : [Extract<E, Disconnected>] extends [never]
    ? 'a window needs the events around the frames: use tradeFeedEvents$ or a log, and keep `disconnected` and `gap`'
    : E;

/** The options that `tumblingWindow` and `slidingWindow` share. */
export interface TimeWindowOptions {
  /**
   * When windows begin. `'epoch'`: at multiples of `everyMs` (`tumblingWindow`: `lengthMs`) since 1970 UTC. `'start'`:
   * when the feed is first complete, or at the first event if it's already open. @defaultValue `'epoch'`
   */
  readonly align?: 'epoch' | 'start' | undefined;
  /**
   * How long to wait for late items after a window ends, in ms, if the source emits events out of order. Delays each
   * window by this time. @defaultValue 0
   */
  readonly allowedLatenessMs?: number | undefined;
  /** The clock that closes windows when no event closes them. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** Limits the items in a window. */
export interface FramesOptions {
  /**
   * How many items a window can hold; with `by`, all windows of the same time together. Further items count as
   * `dropped`. @defaultValue 1 000 000
   */
  readonly maxFrames?: number | undefined;
}

/** Groups windows by key. */
export interface KeyOptions<T, K> {
  /** Returns the key of an item, such as its market. Keys are compared as in a `Map`. Called once per item. */
  readonly by: (item: T) => K;
  /**
   * How many keys there can be at the same time. Items of further keys aren't in any window, and count as
   * `beyondMaxKeys`. @defaultValue 100 000
   */
  readonly maxKeys?: number | undefined;
}
