import type uPlot from 'uplot';
import { colour } from '../charts/drawing';
import type { CandleRow } from './candle-store';

/** The width of a body, as a share of the width of its time. */
const bodyShare = 0.64;

/**
 * Draws candles and their volume. Up is filled, down is striped, incomplete is hollow: readable without colours.
 */
export const drawCandles = (chart: uPlot, rows: readonly CandleRow[]): void => {
  const { ctx, bbox } = chart;
  const dpr = devicePixelRatio;
  const y = (value: number) => Math.round(chart.valToPos(value, 'y', true));
  const colours = { up: colour('--accent'), down: colour('--stop'), volume: colour('--line-strong') };
  const stripes = striped(ctx, colours.down);
  const floor = bbox.top + bbox.height;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const row of rows) {
    const { left, width, middle } = placeOf(chart, row);
    const isUp = row.close >= row.open;
    const stroke = isUp ? colours.up : colours.down;
    const [top, bottom] = [y(Math.max(row.open, row.close)), y(Math.min(row.open, row.close))];
    const body = { left, top, width, height: Math.max(Math.round(dpr), bottom - top) };
    const line = Math.max(1, Math.round(dpr));

    ctx.fillStyle = stroke;
    ctx.fillRect(middle, y(row.high), line, Math.max(0, top - y(row.high)));
    ctx.fillRect(middle, bottom, line, Math.max(0, y(row.low) - bottom));
    if (!row.complete) {
      // The thicker edge is the closing price: a hollow body has no filling that shows the direction.
      const edge = Math.min(2 * line, body.height);
      ctx.fillRect(left, isUp ? top : top + body.height - edge, width, edge);
    }
    box(ctx, body, line, row.complete ? (isUp ? stroke : stripes) : undefined);

    const volumeTop = Math.round(chart.valToPos(row.volume, 'volume', true));
    const bar = { left, top: Math.min(volumeTop, floor - line), width, height: Math.max(line, floor - volumeTop) };
    ctx.fillStyle = colours.volume;
    box(ctx, bar, line, row.complete ? colours.volume : undefined);
  }
  ctx.restore();
};

/** Draws a line at the last price, and its label on the axis. */
export const drawLastPrice = (chart: uPlot, price: number, words: string): void => {
  const { ctx, bbox } = chart;
  const dpr = devicePixelRatio;
  const top = Math.round(chart.valToPos(price, 'y', true));
  if (top < bbox.top || top > bbox.top + bbox.height) return;
  const right = bbox.left + bbox.width;
  ctx.save();
  ctx.strokeStyle = colour('--ink-soft');
  ctx.lineWidth = Math.max(1, Math.round(dpr));
  ctx.setLineDash([2 * dpr, 3 * dpr]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, top + 0.5);
  ctx.lineTo(right, top + 0.5);
  ctx.stroke();
  ctx.font = font(500);
  const width = ctx.measureText(words).width + 10 * dpr;
  ctx.fillStyle = colour('--ink');
  ctx.beginPath();
  ctx.roundRect(right + 2 * dpr, top - 9 * dpr, width, 18 * dpr, 3 * dpr);
  ctx.fill();
  ctx.fillStyle = colour('--paper');
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillText(words, right + 7 * dpr, top + dpr * 0.5);
  ctx.restore();
};

/** Labels the largest volume on the axis, with its name. */
export const drawMostVolume = (chart: uPlot, most: number, words: string): void => {
  const { ctx, bbox } = chart;
  const dpr = devicePixelRatio;
  ctx.save();
  ctx.font = font(400);
  ctx.fillStyle = colour('--ink-soft');
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  const [left, top] = [bbox.left + bbox.width + 6 * dpr, chart.valToPos(most, 'volume', true) + 4 * dpr];
  ctx.fillText(words, left, top);
  ctx.fillText('volume', left, top + 14 * dpr);
  ctx.restore();
};

const font = (weight: number): string => `${weight} ${11 * devicePixelRatio}px "Inter Variable", system-ui, sans-serif`;

const placeOf = (chart: uPlot, { start, end }: CandleRow) => {
  const [from, to] = [chart.valToPos(start / 1_000, 'x', true), chart.valToPos(end / 1_000, 'x', true)];
  const line = Math.max(1, Math.round(devicePixelRatio));
  // An odd width, so that the wick is in the middle.
  const half = Math.max(line, Math.round(((to - from) * bodyShare - line) / 2));
  const middle = Math.round((from + to - line) / 2);
  return { left: middle - half, width: 2 * half + line, middle };
};

interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Draws a box with a border in the current `fillStyle`. Without a filling it is hollow. */
const box = (
  ctx: CanvasRenderingContext2D,
  { left, top, width, height }: Box,
  line: number,
  filling: typeof ctx.fillStyle | undefined,
): void => {
  if (filling === ctx.fillStyle || height <= 2 * line) return ctx.fillRect(left, top, width, height);
  ctx.fillRect(left, top, width, line);
  ctx.fillRect(left, top + height - line, width, line);
  ctx.fillRect(left, top, line, height);
  ctx.fillRect(left + width - line, top, line, height);
  if (filling === undefined) return;
  ctx.fillStyle = filling;
  ctx.fillRect(left + line, top + line, width - 2 * line, height - 2 * line);
};

/** Creates a pattern of stripes. */
const striped = (ctx: CanvasRenderingContext2D, stroke: string): CanvasPattern | string => {
  const size = Math.round(4 * devicePixelRatio);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext('2d');
  if (pen === null) return stroke;
  pen.fillStyle = stroke;
  pen.fillRect(0, 0, size, Math.round(size / 2));
  return ctx.createPattern(tile, 'repeat') ?? stroke;
};
