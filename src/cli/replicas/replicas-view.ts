import type { CliContext } from '../context.js';
import { hasColors, isTerminal } from '../context.js';
import { printed } from '../view/line.js';
import { screen, sizeOf } from '../view/terminal.js';
import { count, counted } from '../view/units.js';
import { logLine } from '../view/views.js';
import { replicasPanel } from './replicas-panel.js';
import type { ReplicasEvent, ReplicasTally } from './replicas-tally.js';

/** Shows the replicas to a person. */
export interface ReplicasView {
  show(event: ReplicasEvent, tally: ReplicasTally): void;
  /** Restores the terminal. */
  close(): void;
}

/** Shows panels on a terminal, and the new lines of the log elsewhere. */
export const replicasView = (context: CliContext, description: string): ReplicasView =>
  isTerminal(context.stdout, context) ? panels(context, description) : lines(context, description);

const maxColumns = 100;

const panels = (context: CliContext, description: string): ReplicasView => {
  const { stdout } = context;
  const terminal = screen(stdout);
  const colors = hasColors(stdout, context);
  return {
    show: (event, tally) => {
      if (event.type === 'event' && event.event.type === 'frame') return;
      const size = sizeOf(stdout);
      const columns = Math.min(size.columns, maxColumns);
      const content = { description, columns, rows: size.rows };
      terminal.draw(replicasPanel(tally, content).map((line) => printed(line, columns - 1, colors)));
    },
    close: () => terminal.close(),
  };
};

const lines = ({ stdout }: CliContext, description: string): ReplicasView => {
  let last: string | undefined;
  stdout.write(logLine(Date.now(), `replicas: ${description}`));
  return {
    show: (_event, { log, now }) => {
      const newest = log.at(-1);
      if (newest === undefined || newest === last) return;
      last = newest;
      stdout.write(logLine(now, newest.replace(/^ *[\d.]+ s {2}/, '')));
    },
    close: () => undefined,
  };
};

/** Returns the lines of the summary at the end. */
export const replicasSummary = ({ replicas }: ReplicasTally): readonly string[] =>
  replicas.map(
    ({ name, frames, gaps, missed }) =>
      `${name}: ${counted(frames, 'frame')}, ${counted(gaps, 'gap')}, ${count(missed)} missed`,
  );
