import { type CliContext, hasColors } from '../context.js';
import { printed } from './line.js';
import { pinnedLine } from './pinned-line.js';
import { status } from './status.js';
import type { View } from './view.js';

/**
 * Keeps one status line on stderr: drawn at each tick, and at once when something happens that is no frame.
 *
 * @param more - what else there is to say at the end of it
 */
export const statusView = (context: CliContext, more: () => string = () => ''): View => {
  const line = pinnedLine(context.stderr);
  const colors = hasColors(context.stderr, context);
  return {
    show: ({ happening, tally }) => {
      if (happening.type !== 'frame') line.draw(printed([...status(tally), [more()]], line.columns - 1, colors));
    },
    close: () => line.close(),
  };
};
