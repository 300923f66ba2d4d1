// The statistics of the benches: medians, because a shared machine makes outliers; pairs, because it drifts.

/** The middle value; the mean of the middle two of an even number. */
export const median = (values) => {
  if (values.length === 0) throw new RangeError('No values have no median.');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** Median, least, greatest, and of how many. */
export const summary = (values) => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
  rounds: values.length,
});

/**
 * `over[i][key] / under[i][key]`, round by round: both samples of a pair met the same load.
 *
 * `key` names a field of a sample, or is a function of one.
 */
export const pairedRatio = (over, under, key) => {
  if (over.length !== under.length)
    throw new RangeError(`${over.length} samples against ${under.length} make no pairs.`);
  const read = typeof key === 'function' ? key : (each) => each[key];
  const ratios = over.map((each, round) => read(each) / read(under[round]));
  const bad = ratios.findIndex((ratio) => !Number.isFinite(ratio));
  if (bad !== -1) throw new RangeError(`Round ${bad + 1} gives no ratio of ${String(key)}.`);
  return summary(ratios);
};
