import { type CliContext, hasColors } from '../context.js';
import { printed } from './line.js';
import { panel, type PanelFrame } from './panel.js';
import { screen } from './screen.js';
import type { View } from './view.js';

/** Beyond it a panel is hard to read, in columns. */
const widest = 100;

/** Draws the panel on stdout: at each tick, and at once when something happens that is no frame. */
export const panelView = (context: CliContext, frame: Pick<PanelFrame, 'service' | 'next'>): View => {
  const { stdout } = context;
  const picture = screen(stdout);
  const colors = hasColors(stdout, context);
  return {
    show: ({ happening, tally }) => {
      if (happening.type === 'frame' && tally.frames > 1) return;
      const columns = Math.min(stdout.columns ?? 80, widest);
      const rows = stdout.rows ?? 24;
      picture.draw(panel(tally, { ...frame, columns, rows }).map((line) => printed(line, columns - 1, colors)));
    },
    close: () => picture.close(),
  };
};
