// Columns: a histogram with bins of the same width.
import * as Plot from '@observablehq/plot';
import { axes, tickLabel } from './svg-axes.mjs';
import { figure } from './table.mjs';

/** Draws the first series as columns, each from its x on, and the other series, the predictions, as lines through the middle of the bins. */
export const columns = (chart) => {
  const [{ name, points }, ...expected] = chart.series;
  const width = points.length > 1 ? points[1][0] - points[0][0] : 1;
  const { marks, ...options } = axes(chart);
  const bars = Plot.rectY(points, {
    x1: ([at]) => at,
    x2: ([at]) => at + width,
    y: ([, value]) => value,
    insetRight: 0.5,
    title: ([at, value]) => `${name}, from ${tickLabel(at)} ${chart.x}: ${figure(value)} ${chart.y}`,
    className: 's0',
  });
  const curves = expected.map(({ points: curve }, n) =>
    Plot.line(curve, { x: ([at]) => at + width / 2, y: ([, value]) => value, className: `line l${(n + 1) % 8}` }),
  );
  return { ...options, marks: [...marks, bars, ...curves] };
};
