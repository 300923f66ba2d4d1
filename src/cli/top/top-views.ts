import { type CliContext, hasColors, isTerminal } from '../context.js';
import { printable } from '../../protocol/printable.js';
import { printed } from '../view/line.js';
import { screen, sizeOf } from '../view/terminal.js';
import { amount, counted, duration } from '../view/units.js';
import { logLine } from '../view/views.js';
import { detailsOf } from './details.js';
import { type Row, table } from './table.js';

/** Shows the rows of `top`. */
export interface TopView {
  show(rows: readonly Row[]): void;
  /** Restores the terminal, and leaves the last table on it. */
  close(): void;
}

/** Returns the table on a terminal, and lines of a log for a pipe or a file. */
export const topView = (context: CliContext): TopView =>
  isTerminal(context.stdout, context) ? tableView(context) : logView(context);

const tableView = (context: CliContext): TopView => {
  const { stdout } = context;
  const terminal = screen(stdout);
  const colors = hasColors(stdout, context);
  const startedAt = Date.now();
  let last: readonly Row[] = [];
  const lines = (): readonly string[] => {
    const { columns, rows } = sizeOf(stdout);
    return table(last, { startedAt, now: Date.now(), columns, rows }).map((line) => printed(line, columns - 1, colors));
  };
  const draw = (): void => terminal.draw(lines());
  stdout.on('resize', draw);
  return {
    show: (rows) => {
      last = rows;
      draw();
    },
    close: () => {
      stdout.off('resize', draw);
      terminal.close();
      // Without the line about the keys, and the empty line before it.
      stdout.write(`${lines().slice(2, -2).join('\n')}\n`);
    },
  };
};

/** How often each status is written to a log, in ms. A change of its state is written at once. */
const logEveryMs = 2_000;

const logView = ({ stdout }: CliContext): TopView => {
  let nextAt = 0;
  let states: readonly (string | undefined)[] = [];
  return {
    show: (rows) => {
      const now = Date.now();
      const isDue = now >= nextAt;
      if (isDue) nextAt = now + logEveryMs;
      for (const [index, row] of rows.entries())
        if (row.snapshot && (isDue || row.snapshot.state !== states[index]))
          stdout.write(logLine(now, rowWords(row, now)));
      states = rows.map(({ snapshot }) => snapshot?.state);
    },
    close: () => undefined,
  };
};

/** Describes a row in one line. */
export const rowWords = ({ name, snapshot = { state: 'connecting' } }: Row, now: number): string => {
  const { state, stats: { framesPerSecond, gaps } = {}, lastFrameAt } = snapshot;
  return [
    `${name} ${state}`,
    ...(framesPerSecond === undefined ? [] : [`${amount(framesPerSecond)} frames/s`]),
    ...(lastFrameAt === undefined ? [] : [`last frame ${duration(Math.max(0, now - lastFrameAt))} ago`]),
    ...(gaps === undefined ? [] : [counted(gaps, 'gap')]),
    ...detailsOf(snapshot).map(([text]) => text),
  ]
    .map(printable)
    .join(' · ');
};
