// Horizontal bars, which leave room for long names.
import * as Plot from '@observablehq/plot';
import { linear } from './svg-axes.mjs';
import { figure } from './table.mjs';

const BAR = 14;
const GAP = 10;

/** Draws one group of bars for each x, in the order of the first series. The unit of the y axis is a pixel. */
export const bars = ({ y, highlight, series, top }) => {
  const groups = [...new Set(series.flatMap(({ points }) => points.map(([name]) => String(name))))];
  const groupHeight = series.length * (BAR + 2) + GAP;
  const isOurs = (group) => !highlight || group.startsWith(highlight);
  // The only bar of a group is in its middle.
  const isAlone = (group) => series.filter(({ points }) => points.some(([name]) => name === group)).length === 1;
  const rows = series.flatMap(({ name, points }, n) =>
    points.map(([group, value]) => ({
      value,
      at:
        (groups.indexOf(String(group)) + 0.5) * groupHeight +
        (isAlone(group) ? 0 : n - (series.length - 1) / 2) * (BAR + 2),
      // A single series has no legend, so its colours distinguish ours from the others.
      style: series.length === 1 && !isOurs(String(group)) ? 'muted' : `s${n % 8}`,
      title: `${group}, ${name}: ${figure(value)} ${y}`,
    })),
  );
  const ends = { x1: 0, x2: 'value', y1: ({ at }) => at - BAR / 2, y2: ({ at }) => at + BAR / 2 };
  const barsOf = (className) =>
    Plot.rect(rows, { ...ends, rx: 2, title: 'title', filter: ({ style }) => style === className, className });
  const label = { textAnchor: 'start', dx: 6, className: 'muted' };
  return {
    height: top + groups.length * groupHeight + 54,
    marginTop: top,
    marginBottom: 54,
    marginLeft: 26 + Math.max(...groups.map((name) => name.length)) * 6.8,
    marginRight: 80,
    x: { ...linear(rows.map(({ value }) => value)), label: y, grid: true },
    y: { domain: [groups.length * groupHeight, 0], axis: null },
    marks: [
      groups.map((group, n) => {
        const className = highlight && isOurs(group) ? 'strong' : undefined;
        return Plot.text([group], { x: 0, y: (n + 0.5) * groupHeight, textAnchor: 'end', dx: -8, className });
      }),
      [...new Set(rows.map(({ style }) => style))].map(barsOf),
      Plot.text(rows, { x: 'value', y: 'at', text: ({ value }) => figure(value), ...label }),
    ],
  };
};
