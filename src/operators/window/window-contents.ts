import type { AccumulatedWindow, Accumulator, FeedWindow, WindowFacts } from './feed-window.js';
import { withOwnBytes } from '../own-bytes.js';

/** How a window stores its items. */
export interface WindowContents<T, A, W> {
  /** Prepares an item for being stored. */
  readonly keep: (item: T) => T;
  /** The maximum number of items that a window adds. */
  readonly limit: number;
  readonly seed: () => A;
  readonly add: (state: A, item: T) => A;
  /** Creates the window that is emitted. */
  readonly toWindow: (facts: WindowFacts, state: A, dropped: number) => W;
}

/** Stores the items, at most `maxFrames` of them. */
export const framesUpTo = <T>(maxFrames: number): WindowContents<T, T[], FeedWindow<T>> => ({
  keep: withOwnBytes,
  limit: maxFrames,
  seed: () => [],
  add: (frames, item) => {
    frames.push(item);
    return frames;
  },
  toWindow: ({ type, start, end, count, gaps, complete }, frames, dropped) => ({
    type,
    start,
    end,
    frames,
    count,
    dropped,
    gaps,
    complete,
  }),
});

/** Stores the value of an accumulator. */
export const accumulated = <T, S>({ seed, add }: Accumulator<T, S>): WindowContents<T, S, AccumulatedWindow<S>> => ({
  keep: (item) => item,
  limit: Infinity,
  seed,
  add,
  toWindow: ({ type, start, end, count, gaps, complete }, value) => ({
    type,
    start,
    end,
    value,
    count,
    gaps,
    complete,
  }),
});
