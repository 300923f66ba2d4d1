// What one client of the relay received: which frames, in which order, and what it was told of the others.

/** Takes note of what a client receives; `summary()` says what came of it. */
export const received = () => {
  const seen = new Set();
  let last = 0;
  let twice = 0;
  let backwards = 0;
  let missing = 0;
  let untold = 0;
  let gaps = 0;
  let sinceLast = 0;
  let lastAt;
  let longestMs = 0;
  return {
    /** A gap: frames may be missing between the last frame and the next one. */
    gap: () => {
      gaps += 1;
      sinceLast += 1;
    },
    /** A frame with its number; the local service counts its frames from 1. */
    frame: (number, at = Date.now()) => {
      if (seen.has(number)) twice += 1;
      else if (number < last) backwards += 1;
      seen.add(number);
      if (last > 0 && number > last + 1) {
        missing += number - last - 1;
        if (sinceLast === 0) untold += number - last - 1;
      }
      last = Math.max(last, number);
      sinceLast = 0;
      longestMs = Math.max(longestMs, at - (lastAt ?? at));
      lastAt = at;
    },
    /** The number of the newest frame. */
    get last() {
      return last;
    },
    summary: () => ({ frames: seen.size, twice, backwards, missing, untold, gaps, longestMs }),
  };
};
