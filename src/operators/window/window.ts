import type { SchedulerLike } from 'rxjs';
import type { Disconnected, Gap } from '../../protocol/event.js';

/**
 * A window with its items.
 *
 * `tumblingWindow` and `slidingWindow` emit windows of a fixed duration, `countWindow` emits windows of a fixed number
 * of items.
 */
export interface FeedWindow<T> extends WindowFacts {
  /** The items of the window, in the order of arrival: frames, or values created from them. At most `maxFrames`. */
  readonly frames: readonly T[];
  /** How many items of the window exceeded `maxFrames` and are not in `frames`. */
  readonly dropped: number;
}

/** A window with the result of an accumulator instead of its items. */
export interface AccumulatedWindow<S> extends WindowFacts {
  /** The result of `seed`, after `add` with each item. */
  readonly value: S;
}

/** The fields of every window. */
export interface WindowFacts {
  readonly type: 'window';
  /** When the window begins, in epoch ms, inclusive. For `countWindow`: the time of the first item. */
  readonly start: number;
  /**
   * When the window ends, in epoch ms, exclusive. For `countWindow`: the time of the last item. For a window that
   * replaces more than 10 000 empty ones: the end of the last of them.
   */
  readonly end: number;
  /** How many items belong to the window, including dropped ones. */
  readonly count: number;
  /**
   * The outages that overlap the window, in full: an outage may begin before the window and end after it. The gap of an
   * outage that is not over ends with the window. If the window ended early, the gap ends at the last known time.
   */
  readonly gaps: readonly Gap[];
  /** `true` if no item is known to be missing. If `false`, a sum over the window may be too small. */
  readonly complete: boolean;
  /** Why the window is not complete: the first that applies of {@link IncompleteReason}. Absent if it is complete. */
  readonly reason?: IncompleteReason;
}

/**
 * Why a window is not complete. `'gap'`: an outage overlaps it, see its `gaps`. `'late'`: it contains a late item of an
 * earlier window. `'overflow'`: items exceeded `maxFrames`. `'jump'`: it replaces more than 10 000 empty windows.
 * `'partial'`: it began before the feed opened, or the source ended before it was over.
 */
export type IncompleteReason = 'gap' | 'late' | 'overflow' | 'jump' | 'partial';

/** The fields that each window has with the option `by`. */
export interface WindowKey<K> {
  /** The key of all its items. */
  readonly key: K;
  /** How many items of the same time had a key beyond `maxKeys`. They are in no window. */
  readonly beyondMaxKeys: number;
}

/** Computes a value from the items of a window. */
export interface Accumulator<T, S> {
  /** Returns the initial value. Called once per window, so it may return an object that `add` changes. */
  readonly seed: () => S;
  /** Returns the value after adding an item. An item that you store in the value stays in memory: prefer numbers. */
  readonly add: (state: S, item: T) => S;
}

/**
 * The source of a window: `E`, if `E` has the events that report outages. Windows over only frames do not compile:
 * without these events, every window would look complete.
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
   * when the feed first opens, or at the first event if the feed is already open. @defaultValue `'epoch'`
   */
  readonly align?: 'epoch' | 'start' | undefined;
  /**
   * How long a window waits for late items after its end, in ms. For a source that emits events out of order. It delays
   * each window by this time. @defaultValue 0
   */
  readonly allowedLatenessMs?: number | undefined;
  /** The clock that closes windows when no event closes them. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The limit of items in a window. */
export interface FramesOptions {
  /**
   * The maximum number of items in a window; with `by`, in all windows of the same time together. Further items are
   * counted in `dropped`. @defaultValue 1 000 000
   */
  readonly maxFrames?: number | undefined;
}

/** Windows by key. */
export interface KeyOptions<T, K> {
  /** Returns the key of an item, such as its market. Keys are compared as by a `Map`. Called once per item. */
  readonly by: (item: T) => K;
  /**
   * The maximum number of keys at the same time. Items of further keys are in no window, and are counted in
   * `beyondMaxKeys`. @defaultValue 100 000
   */
  readonly maxKeys?: number | undefined;
}
