// The slope of a line through noisy points: a median of slopes, which a few wild points do not move (Theil and Sen).
import { median } from '../../bench/lib/stats.mjs';

/** As many points as make half a million pairs: more are put together, each by the median of its neighbours. */
const MOST = 1_000;
/** How many of a normal distribution's deviations hold 99 %, both sides. */
const Z = 2.576;

/**
 * Gives the slope of points `[x, y]`, and between which bounds it is with 99 %: `{ slope, low, high }`, y for each x.
 *
 * Fewer than 8 points say nothing: the bounds are infinite.
 */
export const slopeOf = (points) => {
  const some = thinned(points);
  const slopes = pairSlopes(some);
  if (some.length < 8 || slopes.length === 0) return { slope: NaN, low: -Infinity, high: Infinity };
  const n = some.length;
  // Kendall's S of as many points, had they no slope: its deviation says which of the sorted slopes are the bounds (Sen, 1968).
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
  const size = Math.ceil(points.length / MOST);
  if (size <= 1) return points;
  return Array.from({ length: Math.floor(points.length / size) }, (_, n) => {
    const part = points.slice(n * size, (n + 1) * size);
    return [median(part.map(([x]) => x)), median(part.map(([, y]) => y))];
  });
};
