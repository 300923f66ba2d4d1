import type uPlot from 'uplot';
import { colour } from './drawing';

/** The font of the labels. */
export const axisFont = '11px "Inter Variable", system-ui, sans-serif';

/** The style of an axis. */
export const axisStyle: uPlot.Axis = {
  font: axisFont,
  stroke: () => colour('--ink-soft'),
  ticks: { show: false },
  gap: 6,
};

/** Formats a time for the axis: `14:03`, or `14:03:10` between two minutes. */
export const timeLabel = (split: number): string => {
  const date = new Date(split * 1_000);
  const two = (number: number) => String(number).padStart(2, '0');
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.getSeconds() === 0 ? minutes : `${minutes}:${two(date.getSeconds())}`;
};
