import type { Outage } from '../feed/history';
import type { CandleRow } from './candle-store';

/** A small line chart, in the coordinates of an SVG of 100 by 28. */
export interface Sparkline {
  readonly path: string;
  readonly bands: readonly { readonly from: number; readonly width: number }[];
}

const [width, height] = [100, 28];

/** Creates a small line of closing prices, with breaks at outages. */
export const sparkline = (
  rows: readonly CandleRow[],
  outages: readonly Outage[],
  [from, to]: readonly [from: number, to: number],
): Sparkline => {
  const shareOf = (at: number) => Math.min(1, Math.max(0, (at - from) / (to - from)));
  const prices = rows.map(({ close }) => close);
  const [least, most] = [Math.min(...prices), Math.max(...prices)];
  const isBroken = (one: CandleRow, next: CandleRow) =>
    outages.some((outage) => outage.from < next.end && (outage.to ?? Infinity) > one.start && outage.from >= one.start);
  let path = '';
  rows.forEach((row, index) => {
    const before = rows[index - 1];
    const x = (shareOf((row.start + row.end) / 2) * width).toFixed(1);
    const y = (height - (most === least ? 0.5 : (row.close - least) / (most - least)) * height).toFixed(1);
    path += `${before === undefined || isBroken(before, row) ? 'M' : 'L'}${x} ${y}`;
  });
  const bands = outages
    .map((outage) => ({ from: shareOf(outage.from), to: shareOf(outage.to ?? to) }))
    .filter((band) => band.to > 0 && band.from < 1)
    .map((band) => ({ from: band.from, width: Math.max(0.01, band.to - band.from) }));
  return { path, bands };
};
