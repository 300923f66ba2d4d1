// Statistics that show whether many clients arrive in waves, from their times of arrival.

/** Returns the most times within any `widthMs`. */
export const largestWithin = (times, widthMs) => {
  const sorted = Float64Array.from(times).sort();
  let from = 0;
  return sorted.reduce((most, time, at) => {
    while (time - sorted[from] > widthMs) from += 1;
    return Math.max(most, at - from + 1);
  }, 0);
};

/** Returns the distance between the distributions of two samples (Kolmogorov and Smirnov): 0 to 1. */
export const distance = (some, others) => {
  const [a, b] = [some, others].map((times) => Float64Array.from(times).sort());
  let [i, j, most] = [0, 0, 0];
  while (i < a.length && j < b.length) {
    const time = Math.min(a[i], b[j]);
    while (a[i] <= time) i += 1;
    while (b[j] <= time) j += 1;
    most = Math.max(most, Math.abs(i / a.length - j / b.length));
  }
  return most;
};

/** Returns the distance between `count` times and their own distribution that chance exceeds once in a million. */
export const distanceByChance = (count) => 2.7 / Math.sqrt(count);

/** Returns how many times are in each bin, from `fromMs` on: `[[start, count], …]`. */
export const histogram = (times, { fromMs = 0, toMs = Math.max(...times), widthMs }) => {
  const bins = Array.from({ length: Math.max(1, Math.floor((toMs - fromMs) / widthMs) + 1) }, () => 0);
  for (const time of times) {
    const bin = Math.floor((time - fromMs) / widthMs);
    if (bin in bins) bins[bin] += 1;
  }
  return bins.map((count, bin) => [fromMs + bin * widthMs, count]);
};
