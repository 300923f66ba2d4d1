/** A value that is so many times what is usual is cut off, so that the others can be read. */
const outlier = 4;

/**
 * Finds where the scale of a chart ends: a bit above the highest value, unless that is far above nearly all others.
 *
 * What the feed has risen to is never cut off: the newest values are in sight.
 *
 * @param lines - the values of each line that are in sight, the oldest first
 * @param least - no smaller scale makes sense
 */
export const roof = (lines: readonly (readonly number[])[], least: number): number => {
  const values = lines.flat();
  const newest = lines.map((line) => middle(line.slice(-5)));
  const most = values.reduce((high, value) => Math.max(high, value), 0);
  const sorted = values.slice().sort((one, other) => one - other);
  const usual = Math.max(least, sorted[Math.floor(sorted.length * 0.9)] ?? 0, ...newest);
  return Math.max(least, (most > usual * outlier ? usual * 1.6 : most) * 1.15);
};

const middle = (values: readonly number[]): number =>
  values.slice().sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
