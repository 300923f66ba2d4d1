import uPlot from 'uplot';
import type { Outage } from '../feed/history';
import { colour, type Cut, drawCuts, drawLoad, drawOutages } from './drawing';
import type { Figure, Tone } from './figure';
import { roof } from './roof';

/** What a chart is made of. */
export interface ChartParts {
  readonly figure: Figure;
  readonly outages: () => readonly Outage[];
  /** How many seconds it shows. */
  readonly span: () => number;
  /** When the page was loaded, in epoch ms. */
  readonly loadedAt: number;
  /** What is above the scale is drawn. */
  readonly onCut: (cut: Cut) => void;
  /** The crosshair is at another point, or at none. */
  readonly onPoint: (index: number | undefined) => void;
}

/** Charts of this page move their crosshairs together. */
const together = uPlot.sync('figures');
const font = '11px "Inter Variable", system-ui, sans-serif';

/** Makes the options of a chart, without its size. */
export const chartOptions = (parts: ChartParts): Omit<uPlot.Options, 'width' | 'height'> => {
  const { figure, outages, onPoint, onCut, loadedAt } = parts;
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
      y: { range: (chart) => [0, roof(valuesInSight(chart), figure.least)] },
    },
    series: [{}, ...figure.lines.map(({ tone }, line) => seriesOf(tone, line))],
    axes: [
      {
        ...axis,
        size: 22,
        grid: { show: false },
        space: 52,
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
      draw: [
        (chart) => {
          onCut(drawCuts(chart));
          if (figure.beginsWithPage) drawLoad(chart, loadedAt, font);
        },
      ],
      setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)],
    },
  };
};

const seriesOf = (tone: Tone, line: number): uPlot.Series => ({
  stroke: () => colour(tone === 'strong' ? '--accent' : '--ink-faint'),
  width: tone === 'strong' ? 1.75 : 1.25,
  ...(tone === 'dashed' ? { dash: [2, 3] } : {}),
  ...(line === 0 ? { fill: () => colour('--accent-wash') } : {}),
  points: { show: false },
  spanGaps: false,
});

/** The last minutes, all of them: what is not known is empty. */
const timeRange = ({ span }: ChartParts): [number, number] => {
  const now = Date.now() / 1_000;
  return [now - span(), now];
};

/** The values of each line between the two ends of the axis. */
const valuesInSight = ({ data: [times, ...columns], scales: { x } }: uPlot): readonly (readonly number[])[] => {
  const isInSight = (_: unknown, index: number) => (times[index] ?? 0) >= (x?.min ?? -Infinity);
  return columns.map((column) =>
    Array.from(column)
      .filter(isInSight)
      .filter((value) => value != null),
  );
};

const roomFor = ({ bbox }: uPlot): number => bbox.width / devicePixelRatio - 26;

/** Formats a time for the axis. */
export const label = (split: number): string => {
  const date = new Date(split * 1_000);
  const two = (number: number) => String(number).padStart(2, '0');
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.getSeconds() === 0 ? minutes : `${minutes}:${two(date.getSeconds())}`;
};
