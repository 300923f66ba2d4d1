// Lines: how a figure grows.
import { figure } from './table.mjs';
import { scale, tickLabel } from './svg-scale.mjs';
import { hint, round, text } from './svg-text.mjs';

const HEIGHT = 300;

/** Draws one line with its points for each series; `log` is true, or the one axis that is logarithmic: `'x'`, `'y'`. */
export const lines = ({ x, y, log, series, top: above, width }) => {
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
  const marks = series.flatMap(({ name, points }, n) => [
    `<polyline class="line l${n % 8}" points="${points.map(([at, value]) => `${placeX(at)},${placeY(value)}`).join(' ')}"/>`,
    ...points.map(([at, value]) => {
      const told = hint(`${name}, ${tickLabel(at)} ${x}: ${figure(value)} ${y}`);
      return `<circle class="s${n % 8}" cx="${placeX(at)}" cy="${placeY(value)}" r="4">${told}</circle>`;
    }),
  ]);
  const names = [text(16, above + 8, y, 'muted'), text((left + right) / 2, bottom + 40, x, 'muted', 'middle')];
  return { body: [...grid, ...marks, ...names].join('\n'), height: bottom + 54 };
};
