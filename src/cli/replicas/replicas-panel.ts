import { printable } from '../../protocol/printable.js';
import { type Line, spread } from '../view/line.js';
import { sparkline } from '../view/panel.js';
import { amount, count, counted, stopwatch } from '../view/units.js';
import type { ReplicasTally, ReplicaTally } from './replicas-tally.js';

/** The content of the panels in addition to the totals. */
export interface ReplicasContent {
  readonly description: string;
  readonly columns: number;
  readonly rows: number;
}

/** The time between ticks, in ms. */
export const replicasTickMs = 500;

/** Renders one panel for each replica, the last events and the keys. A pure function. */
export const replicasPanel = (
  tally: ReplicasTally,
  { description, columns, rows }: ReplicasContent,
): readonly Line[] => {
  const width = columns - 1;
  const lines: readonly Line[] = [
    spread([[' rx-trade-feed', 'bold']], [[stopwatch(tally.now - tally.startedAt)]], width),
    [[` ${count(tally.replicas.length)} replicas, one connection: ${description}`, 'dim']],
    ...tally.replicas.flatMap((replica, index) => replicaLines(replica, index, tally, width)),
    [],
    ...tally.log.map((text): Line => [[` ${printable(text)}`, 'dim']]),
    [],
    [[` 1-${tally.replicas.length} select · k kill -9 · s stop · r start · h hand over · q end`, 'cyan']],
  ];
  return lines.slice(0, Math.max(1, rows));
};

const replicaLines = (
  { name, isRunning, frames, perTick, gaps, missed, last }: ReplicaTally,
  index: number,
  { owner, selected }: ReplicasTally,
  width: number,
): readonly Line[] => {
  const isOwner = isRunning && owner === name;
  const role = isRunning ? (isOwner ? 'owns the connection' : 'follows') : 'is down';
  const rate =
    (perTick.slice(-7, -1).reduce((sum, each) => sum + each, 0) / Math.min(6, Math.max(1, perTick.length - 1))) *
    (1_000 / replicasTickMs);
  const bars = sparkline(perTick.slice(0, -1).slice(-Math.max(0, Math.min(30, width - 60))));
  return [
    [],
    [
      [index === selected ? ' ▶ ' : '   ', 'cyan'],
      [isRunning ? '●' : '○', isRunning ? (isOwner ? 'green' : 'cyan') : 'red'],
      [` ${index + 1} ${name} `, 'bold'],
      [role, isOwner ? 'green' : 'plain'],
    ],
    [[`       ${amount(rate)} frames/s`.padEnd(24)], [`${counted(frames, 'frame')}  `], [bars, 'cyan']],
    [
      [`       ${counted(gaps, 'gap')}, ${count(missed)} missed`.padEnd(32), gaps > 0 ? 'yellow' : 'plain'],
      [printable(last), 'dim'],
    ],
  ];
};
