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
  const most = Math.max(0, ...lines.flat());
  const usual = Math.max(least, ...lines.map((line) => Math.max(atShare(line, 0.9), atShare(line.slice(-5), 0.5))));
  return Math.max(least, (most > usual * outlier ? usual * 1.6 : most) * 1.15);
};

/** Finds the value that a share of the values do not exceed. */
const atShare = (values: readonly number[], share: number): number =>
  values.slice().sort((one, other) => one - other)[Math.floor(values.length * share)] ?? 0;
