// Decides whether a resource grows: by the slope of a line through all samples after the warm-up.
import { median } from '../../bench/lib/stats.mjs';

const HOUR_S = 3_600;
/** The part of a run in which code is compiled and caches fill, and its maximum in seconds. */
const WARM_UP = 0.25;
const LONGEST_WARM_UP_S = 120;
/** More points than this are combined, each group into its median. They make half a million pairs. */
const MAX_POINTS = 1_000;
/** The standard deviations of a normal distribution that contain 99 %, on both sides. */
const Z = 2.576;

/**
 * The sampled resources, with the growth that is allowed in a run of any length and in an hour. A short run can't distinguish a small
 * leak from noise, so the larger of the two limits applies.
 */
export const resources = {
  heap: { what: 'heap', unit: 'MB', perRun: 1, perHour: 5 },
  buffers: { what: 'array buffers', unit: 'MB', perRun: 1, perHour: 5 },
  external: { what: 'external memory', unit: 'MB', perRun: 1, perHour: 5 },
  rss: { what: 'resident memory', unit: 'MB', perRun: 16, perHour: 24 },
  handles: { what: 'active handles', unit: '', perRun: 6, perHour: 6 },
  fds: { what: 'file descriptors', unit: '', perRun: 6, perHour: 6 },
};

/** Returns the samples that count: after the warm-up, and taken while every subscription was open. */
export const validSamples = (samples) => {
  const end = samples.at(-1)?.atS ?? 0;
  const from = Math.min(LONGEST_WARM_UP_S, end * WARM_UP);
  return samples.filter(({ atS, isStable }) => isStable && atS >= from);
};

/**
 * Measures the growth of one resource. It grows if the lower bound of its slope, at 99 % confidence, is above the limit.
 *
 * @param samples - `{ atS, isStable, heap, … }`
 * @param name - one of `resources`
 * @returns slope, bounds and limit for each hour; `undefined` if the resource wasn't sampled
 */
export const growthOf = (samples, name) => {
  const { what, unit, perRun, perHour } = resources[name];
  const valid = validSamples(samples).filter((sample) => sample[name] !== undefined);
  if (valid.length === 0) return undefined;
  const hours = (valid.at(-1).atS - valid[0].atS) / HOUR_S;
  const limit = Math.max(perHour, perRun / hours);
  const { slope, low, high } = slopeOf(valid.map((sample) => [sample.atS / HOUR_S, sample[name]]));
  const verdict = low > limit ? 'grows' : high <= limit ? 'flat' : Number.isFinite(slope) ? 'too noisy' : 'too few';
  return { what, unit, limit, slope, low, high, samples: valid.length, verdict };
};

/**
 * Returns the slope of a line through noisy points `[x, y]`, and its bounds at 99 % confidence: `{ slope, low, high }`.
 *
 * The slope is the median of all slopes, which a few outliers don't change (Theil and Sen). With fewer than 8 points the bounds are
 * infinite.
 */
export const slopeOf = (points) => {
  const some = thinned(points);
  const slopes = pairSlopes(some);
  if (some.length < 8 || slopes.length === 0) return { slope: NaN, low: -Infinity, high: Infinity };
  const n = some.length;
  // The deviation of Kendall's S for points without a slope selects the bounds from the sorted slopes (Sen, 1968).
  const spread = Z * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  const at = (rank) => slopes[Math.min(slopes.length - 1, Math.max(0, Math.round(rank)))];
  return {
    slope: at((slopes.length - 1) / 2),
    low: at((slopes.length - spread) / 2 - 1),
    high: at((slopes.length + spread) / 2),
  };
};

const pairSlopes = (points) => {
  const slopes = [];
  for (const [n, [x, y]] of points.entries())
    for (let later = n + 1; later < points.length; later += 1) {
      const [toX, toY] = points[later];
      if (toX > x) slopes.push((toY - y) / (toX - x));
    }
  return Float64Array.from(slopes).sort();
};

const thinned = (points) => {
  const size = Math.ceil(points.length / MAX_POINTS);
  if (size <= 1) return points;
  return Array.from({ length: Math.floor(points.length / size) }, (_, n) => {
    const part = points.slice(n * size, (n + 1) * size);
    return [median(part.map(([x]) => x)), median(part.map(([, y]) => y))];
  });
};
