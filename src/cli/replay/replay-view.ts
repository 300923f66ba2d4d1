import type { StatusArguments } from '../arguments/parsed-command.js';
import { type CliContext, isTerminal } from '../context.js';
import { tickMs } from '../follow/follow.js';
import { printed } from '../view/line.js';
import { pinnedLine } from '../view/terminal.js';
import { logLine, progressEveryMs } from '../view/views.js';
import { replayProgressWords, type ReplayTally } from './replay-tally.js';

/** Shows the progress of a replay. */
export interface ReplayView {
  /** Call this at each tick. */
  show(tally: ReplayTally): void;
  /** Restores the terminal. */
  close(): void;
}

/** Returns the view for stderr: a status line on a terminal, otherwise a log line at intervals. */
export const replayView = ({ quiet, status }: StatusArguments, context: CliContext): ReplayView => {
  if (quiet) return { show: () => undefined, close: () => undefined };
  return isTerminal(context.stderr, context) && status ? lineView(context) : logView(context);
};

const lineView = ({ stderr }: CliContext): ReplayView => {
  const line = pinnedLine(stderr);
  return {
    show: (tally) => line.draw(printed([[replayProgressWords(tally)]], line.columns - 1, false)),
    close: () => line.close(),
  };
};

const logView = ({ stderr }: CliContext): ReplayView => {
  let ticks = 0;
  return {
    show: (tally) => {
      if (++ticks % (progressEveryMs / tickMs) === 0) stderr.write(logLine(Date.now(), replayProgressWords(tally)));
    },
    close: () => undefined,
  };
};
