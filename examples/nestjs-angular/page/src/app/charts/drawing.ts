import type uPlot from 'uplot';
import type { Outage } from '../feed/history';

/** Reads a colour of the style sheet, as it is in the theme of the moment. */
export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Shades the outages, with a line where each begins and ends: a short one is still two pixels wide. */
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
