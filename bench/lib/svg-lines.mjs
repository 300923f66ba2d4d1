// Lines: how a value grows.
import { axes } from './svg-axes.mjs';
import { tickLabel } from './svg-scale.mjs';
import { hint } from './svg-text.mjs';
import { figure } from './table.mjs';

/** A line with more points than this has no circles. */
const MAX_CIRCLES = 40;

/** Draws one line for each series. `log` is true, or `'x'` or `'y'` if only one axis is logarithmic. */
export const lines = (chart) => {
  const { placeX, placeY, grid, names, height } = axes(chart);
  const marks = chart.series.flatMap(({ name, points }, n) => [
    `<polyline class="line l${n % 8}" points="${points.map(([at, value]) => `${placeX(at)},${placeY(value)}`).join(' ')}"/>`,
    ...(points.length > MAX_CIRCLES ? [] : points).map(([at, value]) => {
      const tooltip = hint(`${name}, ${tickLabel(at)} ${chart.x}: ${figure(value)} ${chart.y}`);
      return `<circle class="s${n % 8}" cx="${placeX(at)}" cy="${placeY(value)}" r="4">${tooltip}</circle>`;
    }),
  ]);
  return { body: [...grid, ...marks, ...names].join('\n'), height };
};
