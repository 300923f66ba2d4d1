// Horizontal bars, which leave room for long names.
import { figure } from './table.mjs';
import { scale, tickLabel } from './svg-scale.mjs';
import { hint, round, text } from './svg-text.mjs';

const BAR = 14;
const GAP = 10;

/** Draws one group of bars for each x, in the order of the first series. */
export const bars = ({ y, highlight, series, top, width }) => {
  const groups = [...new Set(series.flatMap(({ points }) => points.map(([name]) => String(name))))];
  const left = 26 + Math.max(...groups.map((name) => name.length)) * 6.8;
  const right = width - 80;
  const groupHeight = series.length * (BAR + 2) + GAP;
  const bottom = top + groups.length * groupHeight + 4;
  const { ticks, part } = scale(
    series.flatMap(({ points }) => points.map(([, value]) => value)),
    false,
  );
  const place = (value) => left + part(value) * (right - left);

  const grid = ticks.flatMap((tick) => [
    `<line class="grid" x1="${round(place(tick))}" x2="${round(place(tick))}" y1="${top}" y2="${bottom}"/>`,
    text(place(tick), bottom + 16, tickLabel(tick), 'muted', 'middle'),
  ]);
  const names = groups.map((name, group) => {
    const at = top + group * groupHeight + (series.length * (BAR + 2)) / 2 + GAP / 2 + 4;
    return text(left - 8, at, name, highlight && name.startsWith(highlight) ? 'strong' : '', 'end');
  });
  // The only bar of a group is in its middle.
  const isAlone = (group) => series.filter(({ points }) => points.some(([name]) => name === group)).length === 1;
  const rowOf = (group, n) => (isAlone(group) ? (series.length - 1) / 2 : n);
  const marks = series.flatMap(({ name, points }, n) =>
    points.flatMap(([group, value]) => {
      const at = top + groups.indexOf(String(group)) * groupHeight + rowOf(group, n) * (BAR + 2) + GAP / 2;
      // A single series has no legend, so its colours distinguish ours from the others.
      const isOther = series.length === 1 && highlight && !String(group).startsWith(highlight);
      const length = round(Math.max(1, place(value) - left));
      const tooltip = hint(`${group}, ${name}: ${figure(value)} ${y}`);
      return [
        `<rect class="${isOther ? 'muted' : `s${n % 8}`}" x="${round(left)}" y="${at}" width="${length}" height="${BAR}" rx="2">${tooltip}</rect>`,
        text(place(value) + 6, at + BAR - 3, figure(value), 'muted'),
      ];
    }),
  );
  return {
    body: [...grid, ...names, ...marks, text((left + right) / 2, bottom + 36, y, 'muted', 'middle')].join('\n'),
    height: bottom + 50,
  };
};
