import type { AccumulatedWindow, Accumulator, FeedWindow, WindowFacts } from './feed-window.js';
import { keeper } from '../memory/keeper.js';

/** What a window makes of the items that fall in it. */
export interface WindowContents<T, A, W> {
  /** Makes items fit to be held; one for each subscription. */
  readonly keeper: () => (item: T) => T;
  /** How many items a window takes in. */
  readonly limit: number;
  readonly seed: () => A;
  readonly add: (state: A, item: T) => A;
  /** Makes the window that is emitted. */
  readonly toWindow: (facts: WindowFacts, state: A, dropped: number) => W;
}

/** Holds the items, up to `maxFrames` of them. */
export const framesUpTo = <T>(maxFrames: number): WindowContents<T, T[], FeedWindow<T>> => ({
  keeper,
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

/** Holds what an accumulator makes of the items. */
export const accumulated = <T, S>({ seed, add }: Accumulator<T, S>): WindowContents<T, S, AccumulatedWindow<S>> => ({
  keeper: () => (item) => item,
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
