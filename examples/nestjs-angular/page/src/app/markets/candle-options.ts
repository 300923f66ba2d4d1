import type uPlot from 'uplot';
import { axisStyle, timeLabel } from '../charts/axis';
import { colour, drawOutages } from '../charts/drawing';
import type { Outage } from '../feed/history';
import type { CandleRow } from './candle-store';
import { drawCandles, drawLastPrice, drawMostVolume } from './draw-candles';
import { amountWords, priceWords } from './market-words';

/** The inputs of a candle chart. */
export interface CandleParts {
  readonly rows: () => readonly CandleRow[];
  readonly outages: () => readonly Outage[];
  /** The visible range, in epoch ms. */
  readonly range: () => readonly [from: number, to: number];
  /** The last price; `undefined` draws no line. */
  readonly price: () => number | undefined;
}

/** The share of the height for the volume, below the prices. */
const volumeShare = 0.2;
/** The free share of the height above the prices, and between prices and volume. */
const air = 0.06;
const noPath = () => null;

/** Creates the options of a candle chart, without its size. */
export const candleOptions = (parts: CandleParts): Omit<uPlot.Options, 'width' | 'height'> => {
  const { rows, outages, range, price } = parts;
  const prices: uPlot.Series = { scale: 'y', paths: noPath, points: { show: false } };
  return {
    padding: [8, 0, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false, setScale: false }, y: false, points: { show: false } },
    scales: {
      x: { time: true, range: () => range().map((at) => at / 1_000) as [number, number] },
      y: { range: (_chart, least, most) => priceRange(least, most, price()) },
      volume: { range: (_chart, _least, most) => [0, Math.max(most ?? 0, 1e-9) / volumeShare] },
    },
    series: [{}, prices, prices, prices, prices, { scale: 'volume', paths: noPath, points: { show: false } }],
    axes: [
      {
        ...axisStyle,
        size: 24,
        grid: { show: false },
        space: 64,
        // A label that is cut off at the edge can't be read.
        values: (chart, splits) => splits.map((split) => (chart.valToPos(split, 'x') < 24 ? '' : timeLabel(split))),
      },
      {
        ...axisStyle,
        scale: 'y',
        side: 1,
        size: 74,
        space: 40,
        grid: { stroke: () => colour('--line'), width: 1, filter: pricesOnly },
        filter: pricesOnly,
        values: (chart, splits, _axis, _space, step) =>
          splits.map((split) => (isShown(chart, split, price()) ? priceWords(split, digitsFor(step)) : '')),
      },
    ],
    hooks: {
      drawClear: [(chart) => drawOutages(chart, outages(), Date.now())],
      draw: [
        (chart) => {
          drawCandles(chart, rows());
          const most = Math.max(0, ...rows().map(({ volume }) => volume));
          drawMostVolume(chart, most, most > 0 ? amountWords(most) : '');
          const last = price();
          if (last !== undefined) drawLastPrice(chart, last, priceWords(last));
        },
      ],
    },
  };
};

/** Returns the data for uPlot. The x of a candle is the middle of its time. */
export const columnsOf = (rows: readonly CandleRow[]): uPlot.AlignedData => [
  rows.map(({ start, end }) => (start + end) / 2_000),
  rows.map(({ open }) => open),
  rows.map(({ high }) => high),
  rows.map(({ low }) => low),
  rows.map(({ close }) => close),
  rows.map(({ volume }) => volume),
];

/** Returns a range for the candles and the last price that leaves the lower part of the plot to the volume. */
const priceRange = (lowest: number | null, highest: number | null, last: number | undefined): [number, number] => {
  if (lowest === null || highest === null) return [0, 1];
  const [least, most] = [Math.min(lowest, last ?? lowest), Math.max(highest, last ?? highest)];
  const height = Math.max(most - least, most * 0.0001) / (1 - volumeShare - 2 * air);
  return [most + height * air - height, most + height * air];
};

/** Removes price labels and grid lines at the height of the volume. */
const pricesOnly = ({ scales }: uPlot, splits: number[]): (number | null)[] => {
  const [min, max] = [scales['y']?.min ?? 0, scales['y']?.max ?? 0];
  const lowest = min + (max - min) * (volumeShare + air / 2);
  return splits.map((split) => (split < lowest ? null : split));
};

/** The least distance of a label from the label of the last price, in pixels. */
const labelRoom = 16;

/** Returns whether the label of a price is shown: not at the height of the volume, and not under the last price. */
const isShown = (chart: uPlot, split: number | null, last: number | undefined): split is number =>
  split !== null &&
  (last === undefined || Math.abs(chart.valToPos(split, 'y') - chart.valToPos(last, 'y')) >= labelRoom);

/** Returns how many decimal digits the multiples of a step need: 0 for 5, 1 for 2.5. */
const digitsFor = (step: number): number =>
  [0, 1, 2, 3, 4, 5].find((digits) => Math.abs(((step * 10 ** digits) % 1) - 0.5) > 0.499) ?? 6;
