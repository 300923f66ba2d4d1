// The axes of a chart with lines or columns: positions, a grid, and labels.
import { scale, tickLabel } from './svg-scale.mjs';
import { round, text } from './svg-text.mjs';

const HEIGHT = 300;

/** Returns functions from values to positions, the grid, the labels of the axes, and the height of the chart. */
export const axes = ({ x, y, log, series, top: above, width }) => {
  const top = above + 20;
  const [left, right, bottom] = [70, width - 30, top + HEIGHT];
  const all = series.flatMap(({ points }) => points);
  const across = scale(
    all.map(([at]) => at),
    log === true || log === 'x',
  );
  const up = scale(
    all.map(([, value]) => value),
    log === true || log === 'y',
  );
  const placeX = (value) => round(left + across.part(value) * (right - left));
  const placeY = (value) => round(bottom - up.part(value) * HEIGHT);
  const grid = [
    ...up.ticks.flatMap((tick) => [
      `<line class="grid" x1="${left}" x2="${right}" y1="${placeY(tick)}" y2="${placeY(tick)}"/>`,
      text(left - 8, placeY(tick) + 4, tickLabel(tick), 'muted', 'end'),
    ]),
    ...across.ticks.map((tick) => text(placeX(tick), bottom + 18, tickLabel(tick), 'muted', 'middle')),
  ];
  const names = [text(16, above + 8, y, 'muted'), text((left + right) / 2, bottom + 40, x, 'muted', 'middle')];
  return { placeX, placeY, bottom, grid, names, height: bottom + 54 };
};
