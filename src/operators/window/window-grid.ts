/** Where the windows of a subscription lie: window `i` begins `everyMs` after window `i - 1`. Times in epoch ms. */
export interface WindowGrid {
  readonly start: (index: number) => number;
  readonly end: (index: number) => number;
  /** The first window that ends after a time. */
  readonly firstAt: (time: number) => number;
  /** The last window that has begun at a time. It and all from `firstAt` on are those that the time falls in. */
  readonly lastAt: (time: number) => number;
}

/**
 * Lays out windows of `lengthMs`.
 *
 * @param everyMs - from the start of a window to the start of the next, at most `lengthMs`
 * @param origin - where window 0 begins
 * @param first - the lowest index that there is
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
