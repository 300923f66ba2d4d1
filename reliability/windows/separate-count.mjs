// Counts frames by their `receivedAt`, without an operator, and compares windows with that count.

/** Creates a count for windows of one length. */
export const separateCount = (lengthMs, now = Date.now) => {
  const counts = new Map();
  const firstAt = new Map();
  const windows = [];
  let [first, last] = [Infinity, -Infinity];
  const startOf = (time) => Math.floor(time / lengthMs) * lengthMs;

  return {
    lengthMs,
    /** Counts a frame. Call it before any operator sees the frame. */
    frame: (receivedAt) => {
      const start = startOf(receivedAt);
      counts.set(start, (counts.get(start) ?? 0) + 1);
      if (!firstAt.has(start)) firstAt.set(start, now());
      first = Math.min(first, receivedAt);
      last = Math.max(last, receivedAt);
    },
    /** Records a window of the operator. */
    window: ({ start, end, count, complete }) => windows.push({ start, end, count, complete, at: now() }),
    /** Compares the windows with the count. */
    result: () => {
      const wrong = windows.filter(({ start, end, count }) => sumOf(counts, start, end) !== count);
      const inWindows = windows.reduce((sum, { count }) => sum + count, 0);
      const frames = [...counts.values()].reduce((sum, count) => sum + count, 0);
      const incomplete = windows.filter(({ start, end, complete }) => start >= first && end <= last && !complete);
      const apart = windows.filter(({ start }, n) => n > 0 && start !== windows[n - 1].end);
      // The time since the first frame of the next window. Only that frame, or the clock, shows that a window is over.
      const waits = windows.flatMap(({ end, at }) => (firstAt.has(end) ? [Math.max(0, at - firstAt.get(end))] : []));
      return {
        lengthMs,
        frames,
        inWindows,
        windows: windows.length,
        complete: windows.filter(({ complete }) => complete).length,
        incomplete: incomplete.length,
        wrong: wrong.length,
        wrongButComplete: wrong.filter(({ complete }) => complete).length,
        apart: apart.length,
        longestWaitMs: Math.max(0, ...waits),
        waitP50Ms: quantile(waits, 0.5),
        waitP99Ms: quantile(waits, 0.99),
        latenessP50Ms: quantile(
          windows.map(({ end, at }) => at - end),
          0.5,
        ),
      };
    },
  };
};

const sumOf = (counts, from, to) => {
  let sum = 0;
  for (const [start, count] of counts) if (start >= from && start < to) sum += count;
  return sum;
};

const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.floor(values.length * q)] ?? 0;
