import type uPlot from 'uplot';
import type { Outage } from '../feed/history';

/** Reads a colour of the style sheet in the current theme. */
export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Shades the outages, with a line at their start and end. A short outage is at least two pixels wide. */
export const drawOutages = (chart: uPlot, outages: readonly Outage[], now: number): void => {
  const { ctx, bbox } = chart;
  const right = bbox.left + bbox.width;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { from, to } of outages) {
    const start = Math.round(chart.valToPos(from / 1_000, 'x', true));
    const end =
      to === undefined && now / 1_000 >= (chart.scales.x?.max ?? 0) - 2
        ? right
        : Math.round(chart.valToPos((to ?? now) / 1_000, 'x', true));
    if (end < bbox.left || start > right) continue;
    const width = Math.max(2 * devicePixelRatio, end - start);
    ctx.fillStyle = colour('--outage-fill');
    ctx.fillRect(start, bbox.top, width, bbox.height);
    ctx.fillStyle = colour('--outage-edge');
    ctx.fillRect(start, bbox.top, devicePixelRatio, bbox.height);
    if (to !== undefined) ctx.fillRect(start + width - devicePixelRatio, bbox.top, devicePixelRatio, bbox.height);
  }
  ctx.restore();
};

/** The number of points above the scale, and their highest value. */
export interface Cut {
  readonly points: number;
  readonly most: number;
}

/** Marks the points above the scale at the upper edge. */
export const drawCuts = (chart: uPlot): Cut => {
  const { ctx, bbox, data, scales } = chart;
  const [times, ...columns] = data;
  const [from, roof] = [scales.x?.min ?? 0, scales.y?.max ?? Infinity];
  const highest = Array.from(times, (_, index) => Math.max(0, ...columns.map((column) => column[index] ?? 0)));
  const cut = highest
    .map((_, index) => index)
    .filter((index) => isAbove(highest[index], roof) && isAbove(times[index], from));
  const size = 5 * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = colour('--warn');
  for (const index of cut) {
    const x = chart.valToPos(times[index] as number, 'x', true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x - size, bbox.top + 1.5 * size);
    ctx.lineTo(x + size, bbox.top + 1.5 * size);
    ctx.fill();
  }
  ctx.restore();
  return { points: cut.length, most: cut.reduce((most, index) => Math.max(most, highest[index] as number), 0) };
};

/** Draws a line at the time when the page was loaded, if it is visible. */
export const drawLoad = (chart: uPlot, loadedAt: number, font: string): void => {
  const { ctx, bbox } = chart;
  const x = Math.round(chart.valToPos(loadedAt / 1_000, 'x', true));
  if (x <= bbox.left || !chart.data[0].some((time) => time * 1_000 < loadedAt)) return;
  ctx.save();
  ctx.strokeStyle = colour('--line-strong');
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.fillStyle = colour('--ink-soft');
  ctx.font = font.replace('11px', `${11 * devicePixelRatio}px`);
  const isLeft = x > bbox.left + bbox.width / 2;
  ctx.textAlign = isLeft ? 'right' : 'left';
  ctx.fillText('page loaded', x + (isLeft ? -6 : 6) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  ctx.restore();
};

const isAbove = (value: number | undefined, bound: number): boolean => (value ?? 0) > bound;
