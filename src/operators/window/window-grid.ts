/** The start and end of each window, by index. Window `i` begins `everyMs` after window `i - 1`. Times are in epoch ms. */
export interface WindowGrid {
  readonly start: (index: number) => number;
  readonly end: (index: number) => number;
  /** Returns the first window that ends after a time. */
  readonly firstAt: (time: number) => number;
  /** Returns the last window that has begun at a time. The windows from `firstAt` to `lastAt` contain the time. */
  readonly lastAt: (time: number) => number;
}

/**
 * Creates a grid of windows of `lengthMs`.
 *
 * @param everyMs - from the start of a window to the start of the next, at most `lengthMs`
 * @param origin - when window 0 begins
 * @param first - the lowest index
 */
export const windowGrid = (lengthMs: number, everyMs: number, origin: number, first = -Infinity): WindowGrid => {
  const start = (index: number): number => origin + index * everyMs;
  return {
    start,
    end: (index) => start(index) + lengthMs,
    firstAt: (time) => Math.max(first, Math.floor((time - lengthMs - origin) / everyMs) + 1),
    lastAt: (time) => Math.max(first, Math.floor((time - origin) / everyMs)),
  };
};
