// The axes of a chart with lines or columns.
import * as Plot from '@observablehq/plot';

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** Returns the label of a tick: 20K, 1.5M. */
export const tickLabel = (value) => (typeof value === 'number' ? compact.format(value) : value);

const labels = { tickSize: 0, tickFormat: tickLabel, labelAnchor: 'center', labelArrow: 'none', labelOffset: 43 };

/** Returns the options of a scale that begins at 0 and ends at a tick. If all values are 0, it ends at 1. */
export const linear = (values) => {
  const domain = values.every((value) => value === 0) ? { domain: [0, 1] } : { zero: true };
  return { ...labels, ...domain, nice: 5, ticks: 5 };
};

/** Returns the size and the options of both axes, and the unit of the y axis as a mark. */
export const axes = ({ x, y, log, series, top }) => {
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
