// The slope of a line through noisy points: the median of all slopes, which a few outliers don't change (Theil and Sen).
import { median } from '../../bench/lib/stats.mjs';

/** More points than this are combined, each group into its median. They make half a million pairs. */
const MAX_POINTS = 1_000;
/** The standard deviations of a normal distribution that contain 99 %, on both sides. */
const Z = 2.576;

/**
 * Returns the slope of points `[x, y]` and its bounds at 99 % confidence: `{ slope, low, high }`.
 *
 * With fewer than 8 points the bounds are infinite.
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
