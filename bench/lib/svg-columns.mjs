// Columns: a histogram with bins of the same width.
import { axes } from './svg-axes.mjs';
import { tickLabel } from './svg-scale.mjs';
import { hint, round } from './svg-text.mjs';
import { figure } from './table.mjs';

/** Draws the first series as columns, each from its x on, and the other series, the predictions, as lines through the middle of the bins. */
export const columns = (chart) => {
  const [{ name, points }, ...expected] = chart.series;
  const width = points.length > 1 ? points[1][0] - points[0][0] : 1;
  const last = (points.at(-1)?.[0] ?? 0) + width;
  // The axis must include the width of the last column.
  const { placeX, placeY, bottom, grid, names, height } = axes({
    ...chart,
    series: [...chart.series, { points: [[last, 0]] }],
  });
  const bars = points.map(([at, value]) => {
    const [left, top] = [placeX(at), placeY(value)];
    const tooltip = hint(`${name}, from ${tickLabel(at)} ${chart.x}: ${figure(value)} ${chart.y}`);
    const size = `width="${round(Math.max(0.5, placeX(at + width) - left - 0.5))}" height="${round(bottom - top)}"`;
    return `<rect class="s0" x="${left}" y="${top}" ${size}>${tooltip}</rect>`;
  });
  const curves = expected.map(({ points: curve }, n) => {
    const path = curve.map(([at, value]) => `${placeX(at + width / 2)},${placeY(value)}`);
    return `<polyline class="line l${(n + 1) % 8}" points="${path.join(' ')}"/>`;
  });
  return { body: [...grid, ...bars, ...curves, ...names].join('\n'), height };
};
