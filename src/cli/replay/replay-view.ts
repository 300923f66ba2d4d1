import { type CliContext, isTerminal } from '../context.js';
import { tickMs } from '../follow/follow.js';
import { printed } from '../view/line.js';
import { pinnedLine } from '../view/pinned-line.js';
import { progressEveryMs } from '../view/progress-view.js';
import { stamped } from '../view/stamped.js';
import { replayProgressWords, type ReplayTally } from './replay-tally.js';

/** Shows how far a replay is. */
export interface ReplayView {
  /** To be called at each tick. */
  show(tally: ReplayTally): void;
  /** Gives the terminal back. */
  close(): void;
}

/** Gives the view that stderr wants: a status line on a terminal, else a plain line now and then. */
export const replayView = (
  { quiet, 'no-status': noStatus }: { readonly quiet?: true; readonly 'no-status'?: true },
  context: CliContext,
): ReplayView => {
  if (quiet) return { show: () => undefined, close: () => undefined };
  return isTerminal(context.stderr, context) && !noStatus ? lineView(context) : logView(context);
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
      if (++ticks % (progressEveryMs / tickMs) === 0) stderr.write(stamped(Date.now(), replayProgressWords(tally)));
    },
    close: () => undefined,
  };
};
