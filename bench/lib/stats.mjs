// The statistics of the benchmarks: medians, because of outliers, and pairs, because the speed of a machine drifts.

/** Returns the median. */
export const median = (values) => {
  if (values.length === 0) throw new RangeError('An empty list has no median.');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** Returns the median, the minimum, the maximum and the number of values. */
export const summary = (values) => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
  rounds: values.length,
});

const reader = (key) => (typeof key === 'function' ? key : (each) => each[key]);

/** Returns the median of `key` in some samples: a field, or a function of a sample. */
export const medianOf = (samples, key) => median(samples.map(reader(key)));

/** Returns the summary of `key` in some samples. */
export const spreadOf = (samples, key) => summary(samples.map(reader(key)));

/**
 * Returns the summary of `over[i][key] / under[i][key]`. Both samples of a round ran under the same load.
 *
 * `key` is a field of a sample, or a function of a sample.
 */
export const pairedRatio = (over, under, key) => {
  if (over.length !== under.length)
    throw new RangeError(`${over.length} and ${under.length} samples cannot be paired.`);
  const read = reader(key);
  const ratios = over.map((each, round) => read(each) / read(under[round]));
  const bad = ratios.findIndex((ratio) => !Number.isFinite(ratio));
  if (bad !== -1) throw new RangeError(`Round ${bad + 1} has no ratio of ${String(key)}.`);
  return summary(ratios);
};

/** Returns a quantile of numbers; `NaN` without numbers. */
export const quantile = (values, part) => values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? NaN;
