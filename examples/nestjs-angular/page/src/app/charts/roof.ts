/** A value that exceeds the usual values by this factor is cut off, so that the others stay readable. */
const outlier = 4;

/**
 * Returns the end of the scale of a chart: a little above the highest value, unless that is far above nearly all others.
 *
 * The newest values are never cut off, so a lasting rise stays visible.
 *
 * @param lines - the visible values of each line, oldest first
 * @param least - the smallest useful scale
 */
export const roof = (lines: readonly (readonly number[])[], least: number): number => {
  const most = Math.max(0, ...lines.flat());
  const usual = Math.max(least, ...lines.map((line) => Math.max(atShare(line, 0.9), atShare(line.slice(-5), 0.5))));
  return Math.max(least, (most > usual * outlier ? usual * 1.6 : most) * 1.15);
};

/** Returns the value that a share of the values don't exceed. */
const atShare = (values: readonly number[], share: number): number =>
  values.slice().sort((one, other) => one - other)[Math.floor(values.length * share)] ?? 0;
