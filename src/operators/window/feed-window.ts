import type { Disconnected, Gap } from '../../protocol/event.js';
import type { ReplayedGap } from '../items/replayed.js';

/**
 * A window with its items.
 *
 * `tumblingWindow` and `slidingWindow` emit windows of a fixed duration, `countWindow` emits windows of a fixed number of items.
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
   * When the window ends, in epoch ms, exclusive. For `countWindow`: the time of the last item. For a window that replaces more than 10 000 empty
   * ones: the end of the last of them.
   */
  readonly end: number;
  /** How many items belong to the window, including dropped ones. */
  readonly count: number;
  /**
   * The outages that overlap the window, in full: an outage may begin before the window and end after it. The gap of an outage that
   * is not over ends with the window. If the window ended early, the gap ends at the last known time.
   */
  readonly gaps: readonly Gap[];
  /** `true` if no item is known to be missing. If `false`, a sum over the window may be too small. */
  readonly complete: boolean;
}

/** Computes a value from the items of a window. */
export interface Accumulator<T, S> {
  /** Returns the initial value. Called once per window, so it may return an object that `add` changes. */
  readonly seed: () => S;
  /** Returns the value after adding an item. An item that you store in the value stays in memory: prefer numbers. */
  readonly add: (state: S, item: T) => S;
}

/**
 * The source of a window: `E`, if `E` has the events that report outages. Windows over only frames do not compile: without these events, every
 * window would look complete.
 */
export type WindowSource<E> = Disconnected extends E
  ? E
  : [Extract<E, ReplayedGap>] extends [never]
    ? 'a window needs the events around the frames: use tradeFeedEvents$ or replay$, and keep `disconnected` and `gap`'
    : E;
