// Charts with two axes: lines, how a value grows, and columns, a histogram with bins of the same width.
import * as Plot from '@observablehq/plot';
import { figure } from './table.mjs';

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** Returns the label of a tick: 20K, 1.5M. */
const tickLabel = (value) => (typeof value === 'number' ? compact.format(value) : value);

const labels = { tickSize: 0, tickFormat: tickLabel, labelAnchor: 'center', labelArrow: 'none', labelOffset: 43 };

/** Returns the options of a scale that begins at 0 and ends at a tick. If all values are 0, it ends at 1. */
export const linear = (values) => {
  const domain = values.every((value) => value === 0) ? { domain: [0, 1] } : { zero: true };
  return { ...labels, ...domain, nice: 5, ticks: 5 };
};

/** Returns the size and the options of both axes, and the unit of the y axis as a mark. */
const axes = ({ x, y, log, series, top }) => {
  const scaleOf = (axis, at) => {
    const values = series.flatMap(({ points }) => points.map((point) => point[at]));
    return log === true || log === axis ? logarithmic(values) : linear(values);
  };
  return {
    height: top + 374,
    marginTop: top + 20,
    marginBottom: 54,
    marginLeft: 70,
    marginRight: 30,
    x: { ...scaleOf('x', 0), label: x },
    y: { ...scaleOf('y', 1), label: null, grid: true },
    marks: [Plot.text([y], { frameAnchor: 'top-left', textAnchor: 'start', dx: -54, dy: -20, className: 'muted' })],
  };
};

// By default, d3 also labels 2 and 5 times a power of ten.
const logarithmic = (values) => {
  const powers = values.filter((value) => value > 0).map((value) => Math.log10(value));
  const from = Math.floor(Math.min(...powers));
  const to = Math.max(from + 1, Math.ceil(Math.max(...powers)));
  const ticks = Array.from({ length: to - from + 1 }, (_, n) => 10 ** (from + n));
  return { ...labels, type: 'log', domain: [ticks[0], ticks.at(-1)], clamp: true, ticks };
};

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
