import uPlot from 'uplot';
import type { Outage } from '../feed/history';
import { axisFont, axisStyle, timeLabel } from './axis';
import { colour, type Cut, drawCuts, drawLoad, drawOutages } from './drawing';
import type { Figure, Tone } from './figure';
import { roof } from './roof';

/** The inputs of a chart. */
export interface ChartParts {
  readonly figure: Figure;
  readonly outages: () => readonly Outage[];
  /** The number of seconds that it shows. */
  readonly span: () => number;
  /** The time when the page was loaded, in epoch ms. */
  readonly loadedAt: number;
  /** Called after drawing, with the points above the scale. */
  readonly onCut: (cut: Cut) => void;
}

/** The charts of this page move their crosshairs together. */
const together = uPlot.sync('figures');

/** Creates the options of a chart, without its size. */
export const chartOptions = (parts: ChartParts): Omit<uPlot.Options, 'width' | 'height'> => {
  const { figure, outages, onCut, loadedAt } = parts;
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
      y: { range: (chart) => [0, roof(visibleValues(chart), figure.least)] },
    },
    series: [{}, ...figure.lines.map(({ tone }, line) => seriesOf(tone, line))],
    axes: [
      {
        ...axisStyle,
        size: 22,
        grid: { show: false },
        space: 52,
        // In seconds. A narrow chart needs the steps of two and three minutes.
        incrs: [5, 10, 15, 30, 60, 120, 180, 300, 600, 900],
        // A label that is cut off at the edge can't be read.
        values: (chart, splits) =>
          splits.map((split) => (chart.valToPos(split, 'x') > roomFor(chart) ? '' : timeLabel(split))),
      },
      {
        ...axisStyle,
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
          if (figure.beginsWithPage) drawLoad(chart, loadedAt, axisFont);
        },
      ],
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

/** Returns the range of the last minutes. Times without data stay empty. */
const timeRange = ({ span }: ChartParts): [number, number] => {
  const now = Date.now() / 1_000;
  return [now - span(), now];
};

/** Returns the visible values of each line. */
const visibleValues = ({ data: [times, ...columns], scales: { x } }: uPlot): readonly (readonly number[])[] => {
  const isVisible = (_: unknown, index: number) => (times[index] ?? 0) >= (x?.min ?? -Infinity);
  return columns.map((column) =>
    Array.from(column)
      .filter(isVisible)
      .filter((value) => value != null),
  );
};

const roomFor = ({ bbox }: uPlot): number => bbox.width / devicePixelRatio - 26;
