// Records the frames that one client of the relay received: their order, and whether a gap reported the missing ones.

/** Creates the log of a client. `summary()` returns the counts. */
export const createReceivedLog = () => {
  const seen = new Set();
  let last = 0;
  let twice = 0;
  let backwards = 0;
  let missing = 0;
  let unreported = 0;
  let gaps = 0;
  let gapsSinceFrame = 0;
  let lastAt;
  let longestMs = 0;
  return {
    /** Records a gap: frames may be missing between the last frame and the next one. */
    gap: () => {
      gaps += 1;
      gapsSinceFrame += 1;
    },
    /** Records a frame by its number. The local service numbers its frames from 1. */
    frame: (number, at = Date.now()) => {
      if (seen.has(number)) twice += 1;
      else if (number < last) backwards += 1;
      seen.add(number);
      if (last > 0 && number > last + 1) {
        missing += number - last - 1;
        if (gapsSinceFrame === 0) unreported += number - last - 1;
      }
      last = Math.max(last, number);
      gapsSinceFrame = 0;
      longestMs = Math.max(longestMs, at - (lastAt ?? at));
      lastAt = at;
    },
    /** The number of the newest frame. */
    get last() {
      return last;
    },
    summary: () => ({ frames: seen.size, twice, backwards, missing, unreported, gaps, longestMs }),
  };
};
