import type { Disconnected, Gap } from '../../protocol/event.js';
import type { ReplayedGap } from '../items/replayed.js';

/**
 * A window with what fell in it.
 *
 * `tumblingWindow` and `slidingWindow` give windows of time, `countWindow` windows of so many items.
 */
export interface FeedWindow<T> extends WindowFacts {
  /** The items that fell in it, in the order in which they came: frames, or what was made of them. At most `maxFrames`. */
  readonly frames: readonly T[];
  /** Items that fell in it beyond `maxFrames`: counted, not held. */
  readonly dropped: number;
}

/** A window with what an accumulator made of its items; it holds none of them. */
export interface AccumulatedWindow<S> extends WindowFacts {
  /** What `seed` gave, with every item added. */
  readonly value: S;
}

/** What is known of every window. */
export interface WindowFacts {
  readonly type: 'window';
  /** Where it begins, in epoch ms; this moment is part of it. Of a `countWindow`: the time of its first item. */
  readonly start: number;
  /**
   * Where it ends, in epoch ms; this moment is part of the next one. Of a `countWindow`: the time of its last item. Of one that is emitted for
   * more than 10 000 empty windows: where the last of them ends.
   */
  readonly end: number;
  /** Items that fell in it, held or not. */
  readonly count: number;
  /**
   * The outages that reach into it, whole: one may begin before the window and end after it. An outage that went on when the
   * window was emitted has a gap as far as it was known: `to` is then the end of the window.
   */
  readonly gaps: readonly Gap[];
  /** Whether nothing is known to be missing from it. With `false`, a sum over it is too small, or may be. */
  readonly complete: boolean;
}

/** What an accumulator is made of. */
export interface Accumulator<T, S> {
  /** Makes what a window begins with; called once for each window, so it may give an object that `add` changes. */
  readonly seed: () => S;
  /** Adds an item to it and gives the result. An item that it keeps is held: prefer numbers. */
  readonly add: (state: S, item: T) => S;
}

/**
 * The source of a window: `E`, if it tells of outages, when they begin. A window over frames alone could not know of one and would
 * call every window complete, so it does not compile.
 */
export type TellsOfGaps<E> = Disconnected extends E
  ? E
  : [Extract<E, ReplayedGap>] extends [never]
    ? 'a window needs the events around the frames: use tradeFeedEvents$ or replay$, and keep `disconnected` and `gap`'
    : E;

/**
 * `E`, where it is not inferred from: the type of what is wanted must not decide on the type of the source. `NoInfer` does not do, since
 * a union behind it is not taken apart.
 */
export type Settled<E> = [E][E extends unknown ? 0 : never];
