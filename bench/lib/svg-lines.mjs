// Lines: how a figure grows.
import { axes } from './svg-axes.mjs';
import { tickLabel } from './svg-scale.mjs';
import { hint } from './svg-text.mjs';
import { figure } from './table.mjs';

/** More points than this are a line without circles. */
const FEW = 40;

/**
 * Draws one line for each series, with its points where they are few; `log` is true, or the one axis that is logarithmic:
 * `'x'`, `'y'`.
 */
export const lines = (chart) => {
  const { placeX, placeY, grid, names, height } = axes(chart);
  const marks = chart.series.flatMap(({ name, points }, n) => [
    `<polyline class="line l${n % 8}" points="${points.map(([at, value]) => `${placeX(at)},${placeY(value)}`).join(' ')}"/>`,
    ...(points.length > FEW ? [] : points).map(([at, value]) => {
      const told = hint(`${name}, ${tickLabel(at)} ${chart.x}: ${figure(value)} ${chart.y}`);
      return `<circle class="s${n % 8}" cx="${placeX(at)}" cy="${placeY(value)}" r="4">${told}</circle>`;
    }),
  ]);
  return { body: [...grid, ...marks, ...names].join('\n'), height };
};
