// Lines: how a value grows.
import * as Plot from '@observablehq/plot';
import { axes, tickLabel } from './svg-axes.mjs';
import { figure } from './table.mjs';

/** A line with more points than this has no circles. */
const MAX_CIRCLES = 40;

/** Draws one line for each series. `log` is true, or `'x'` or `'y'` if only one axis is logarithmic. */
export const lines = (chart) => {
  const { marks, ...options } = axes(chart);
  const drawn = chart.series.flatMap(({ name, points }, n) => [
    Plot.line(points, { className: `line l${n % 8}` }),
    Plot.dot(points.length > MAX_CIRCLES ? [] : points, {
      r: 4,
      fill: 'currentColor',
      title: ([at, value]) => `${name}, ${tickLabel(at)} ${chart.x}: ${figure(value)} ${chart.y}`,
      className: `s${n % 8}`,
    }),
  ]);
  return { ...options, marks: [...marks, ...drawn] };
};
