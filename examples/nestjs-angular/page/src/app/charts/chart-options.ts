import uPlot from 'uplot';
import type { Outage } from '../feed/history';
import { colour, drawOutages } from './drawing';
import type { Figure } from './figure';

/** What a chart is made of. */
export interface ChartParts {
  readonly figure: Figure;
  readonly outages: () => readonly Outage[];
  /** How many seconds it shows. */
  readonly span: () => number;
  /** Where it begins, at first, in epoch ms. */
  readonly loadedAt: number;
  /** The crosshair is at another point, or at none. */
  readonly onPoint: (index: number | undefined) => void;
}

/** Charts of this page move their crosshairs together. */
const together = uPlot.sync('figures');
const font = '11px "Inter Variable", system-ui, sans-serif';

/** Makes the options of a chart, without its size. */
export const chartOptions = (parts: ChartParts): Omit<uPlot.Options, 'width' | 'height'> => {
  const { figure, outages, onPoint } = parts;
  const axis: uPlot.Axis = {
    font,
    stroke: () => colour('--ink-soft'),
    ticks: { show: false },
    gap: 6,
  };
  return {
    padding: [8, 0, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: together.key, setSeries: false },
      drag: { x: false, y: false, setScale: false },
      y: false,
      points: { size: 7, width: 2, fill: () => colour('--surface') },
    },
    scales: {
      x: { time: true, range: () => timeRange(parts) },
      y: { range: (_chart, _least, most) => [0, roof(most, figure.least)] },
    },
    series: [{}, ...figure.lines.map(({ tone }, line) => seriesOf(tone, line))],
    axes: [
      {
        ...axis,
        size: 22,
        grid: { show: false },
        space: 64,
        // One that would be cut off at the edge says nothing.
        values: (chart, splits) =>
          splits.map((split) => (chart.valToPos(split, 'x') > roomFor(chart) ? '' : label(split))),
      },
      {
        ...axis,
        size: 46,
        space: 36,
        grid: { stroke: () => colour('--line'), width: 1 },
        values: (_chart, splits) => splits.map((split) => figure.tick(split)),
      },
    ],
    hooks: {
      drawClear: [(chart) => drawOutages(chart, outages(), Date.now())],
      setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)],
    },
  };
};

const seriesOf = (tone: 'strong' | 'soft', line: number): uPlot.Series => ({
  stroke: () => colour(tone === 'strong' ? '--accent' : '--ink-faint'),
  width: tone === 'strong' ? 1.75 : 1.25,
  ...(line === 0 ? { fill: () => colour('--accent-wash') } : {}),
  points: { show: false },
  spanGaps: false,
});

/** The last minutes; less at first, but a minute at least. */
const timeRange = ({ span, loadedAt }: ChartParts): [number, number] => {
  const now = Date.now() / 1_000;
  return [Math.min(now - 60, Math.max(now - span(), loadedAt / 1_000)), now];
};

/** A bit of air above the highest point, and no smaller range than what makes sense. */
const roof = (most: number | null, least: number): number => Math.max(least, (most ?? 0) * 1.15);

const roomFor = ({ bbox }: uPlot): number => bbox.width / devicePixelRatio - 26;

/** Formats a time for the axis. */
export const label = (split: number): string => {
  const date = new Date(split * 1_000);
  const two = (number: number) => String(number).padStart(2, '0');
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.getSeconds() === 0 ? minutes : `${minutes}:${two(date.getSeconds())}`;
};
