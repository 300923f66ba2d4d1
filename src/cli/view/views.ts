import type { Writable } from 'node:stream';
import type { Frame } from '../../index.js';
import { printable } from '../../protocol/printable.js';
import { type CliContext, hasColors } from '../context.js';
import { type Step, tickMs } from '../follow/follow.js';
import { printed } from './line.js';
import { panel, type PanelContent } from './panel.js';
import { pinnedLine, screen, sizeOf } from './terminal.js';
import { bytes } from './units.js';
import { eventWords, statusLine } from './words.js';

/** Shows the state of a feed to a person. */
export interface View {
  show(step: Step): void;
  /** Restores the terminal. */
  close(): void;
}

/** Shows nothing. */
export const noView: View = { show: () => undefined, close: () => undefined };

/** Returns a line of a log, with its time. */
export const logLine = (at: number, text: string): string => `${new Date(at).toISOString()} ${text}\n`;

/** The reconnect before which a feed without any connection names `doctor`. */
const attemptsBeforeAdvice = 3;

/** Writes a log line for each event that is not a frame. */
export const eventLogView = (output: Writable): View => ({
  show: ({ event, tally }) => {
    if (event.type === 'frame' || event.type === 'tick' || event.type === 'ended') return;
    output.write(logLine(tally.now, eventWords(event)));
    if (event.type === 'reconnecting' && event.attempt === attemptsBeforeAdvice && tally.connections === 0)
      output.write(logLine(tally.now, 'no connection so far; to find the cause, run rx-trade-feed doctor'));
  },
  close: () => undefined,
});

/** How often the status is written to a log, in ms. */
export const progressEveryMs = 10_000;
const maxStatusColumns = 200;

/**
 * Writes a log line for each event that is not a frame, and the status at intervals.
 *
 * @param more - returns a text for the end of the status
 */
export const progressView = (output: Writable, more: () => string): View => {
  const events = eventLogView(output);
  let ticks = 0;
  return {
    show: (step) => {
      events.show(step);
      const { event, tally } = step;
      if (event.type !== 'tick' || ++ticks % (progressEveryMs / tickMs) !== 0) return;
      const line = [...statusLine(tally), [` · ${more()}`]] as const;
      output.write(logLine(tally.now, printed(line, maxStatusColumns, false)));
    },
    close: () => undefined,
  };
};

/**
 * Shows a status line at the bottom of stderr. Updates it at each tick, and immediately for an event that is not a frame.
 *
 * @param more - returns a text for the end of the line
 */
export const statusView = (context: CliContext, more: () => string = () => ''): View => {
  const line = pinnedLine(context.stderr);
  const colors = hasColors(context.stderr, context);
  return {
    show: ({ event, tally }) => {
      if (event.type !== 'frame') line.draw(printed([...statusLine(tally), [more()]], line.columns - 1, colors));
    },
    close: () => line.close(),
  };
};

/** The maximum width of the panel, in columns. A wider panel is difficult to read. */
const maxPanelColumns = 100;

/** Shows the panel of `demo` on stdout. Updates it at each tick, for the first frame, and for each event that is not a frame. */
export const panelView = (context: CliContext, content: Pick<PanelContent, 'service' | 'next'>): View => {
  const { stdout } = context;
  const terminal = screen(stdout);
  const colors = hasColors(stdout, context);
  return {
    show: ({ event, tally }) => {
      if (event.type === 'frame' && tally.frames > 1) return;
      const { columns: width, rows } = sizeOf(stdout);
      const columns = Math.min(width, maxPanelColumns);
      terminal.draw(panel(tally, { ...content, columns, rows }).map((line) => printed(line, columns - 1, colors)));
    },
    close: () => terminal.close(),
  };
};

const statusEveryTicks = 2_000 / tickMs;
const maxPlainColumns = 160;

/** Writes the content of the panel as log lines, for a pipe or a file: events, the first frame, and the status every 2 s. */
export const plainView = (output: Writable, { service }: { readonly service: string }): View => {
  const events = eventLogView(output);
  output.write(logLine(Date.now(), `streaming from ${service}`));
  let ticks = 0;
  return {
    show: (step) => {
      const { event, tally } = step;
      const log = (text: string): unknown => output.write(logLine(tally.now, text));
      if (event.type === 'frame' && tally.frames === 1) log(firstFrame(event));
      if (event.type === 'tick' && ticks++ % statusEveryTicks === 0)
        log(printed(statusLine(tally), maxPlainColumns, false));
      events.show(step);
    },
    close: () => undefined,
  };
};

const firstFrame = ({ data, isBinary }: Frame): string => {
  const start = data.subarray(0, maxPlainColumns * 4);
  const payload = isBinary ? start.toString('hex') : printable(start.toString());
  return printed([[`first frame, ${bytes(data.length)}: ${payload}`]], maxPlainColumns, false);
};
