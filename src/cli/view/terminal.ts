import { catchError, defer, filter, finalize, fromEvent, map, merge, mergeMap, noop, of, throwError } from 'rxjs';
import { type CliContext, hasColors, isTerminal, type Output } from '../context.js';
import { type Line, logLine, printed } from './text.js';

export type TerminalSize = Readonly<Record<'columns' | 'rows', number>>;

/** Returns the size of a terminal. Defaults to 80 columns and 24 rows if it's unknown, which some report as 0. */
export const sizeOf = ({ columns = 0, rows = 0 }: Output): TerminalSize => ({
  columns: columns > 0 ? columns : 80,
  rows: rows > 0 ? rows : 24,
});

export interface View<S> {
  readonly show: (state: S) => void;
  readonly close: () => void;
}

/** How a command shows a state: as lines on a terminal, or as log lines in a pipe or a file. */
export interface Look<S> {
  readonly lines: (state: S, size: TerminalSize) => readonly Line[];
  /** Returns what stays on the terminal after the command has ended. */
  readonly last?: Look<S>['lines'];
  /** Returns the log lines for what's new, plus the status if `isDue`. */
  readonly log: (state: S, isDue: boolean) => readonly string[];
  readonly logEveryMs: number;
  /** When the first status is due. @defaultValue `logEveryMs` */
  readonly firstLogMs?: number;
  readonly maxColumns?: number;
}

/** Shows a state on stdout: on the whole terminal, or as a log. */
export const screenView = <S>(context: CliContext, look: Look<S>): View<S> =>
  viewOn(context.stdout, context, screen, look);

export interface StatusOptions {
  readonly quiet?: boolean | undefined;
  readonly status?: boolean | undefined;
}

/** Shows a state on stderr: on the bottom line of a terminal, or as a log. */
export const lineView = <S>({ quiet, status }: StatusOptions, context: CliContext, look: Look<S>): View<S> =>
  quiet ? { show: noop, close: noop } : viewOn(context.stderr, context, status ? pinnedLine : undefined, look);

/** How often a log shows the status, in ms. */
export const progressEveryMs = 10_000;

export const progressView = <S>(values: StatusOptions, context: CliContext, words: (state: S) => string): View<S> =>
  lineView(values, context, {
    lines: (state) => [[[words(state)]]],
    logEveryMs: progressEveryMs,
    log: (state, isDue) => (isDue ? [words(state)] : []),
  });

type NewSurface = (output: Output) => Surface;

const viewOn = <S>(output: Output, context: CliContext, on: NewSurface | undefined, look: Look<S>): View<S> =>
  on && isTerminal(output, context) ? drawn(output, context, on(output), look) : logged(output, look);

const logged = <S>(output: Output, { log, logEveryMs, firstLogMs = logEveryMs }: Look<S>): View<S> => {
  let dueAt = Date.now() + firstLogMs;
  return {
    show: (state) => {
      const isDue = Date.now() >= dueAt;
      if (isDue) dueAt = Date.now() + logEveryMs;
      for (const text of log(state, isDue)) output.write(logLine(text));
    },
    close: noop,
  };
};

const drawn = <S>(output: Output, context: CliContext, surface: Surface, look: Look<S>): View<S> => {
  const { lines, last = () => [], maxColumns = Infinity } = look;
  let shown: { readonly state: S } | undefined;
  const printedLines = (of: Look<S>['lines']): readonly string[] => {
    const { columns, rows } = sizeOf(output);
    const size = { columns: Math.min(columns, maxColumns), rows };
    const all = shown === undefined ? [] : of(shown.state, size);
    return all.map((line) => printed(line, size.columns - 1, hasColors(output, context)));
  };
  const draw = (): void => {
    if (shown !== undefined) surface.draw(printedLines(lines));
  };
  output.on('resize', draw);
  return {
    show: (state) => {
      shown = { state };
      draw();
    },
    close: () => {
      output.off('resize', draw);
      surface.close();
      for (const line of printedLines(last)) output.write(`${line}\n`);
    },
  };
};

interface Surface {
  readonly draw: (lines: readonly string[]) => void;
  readonly close: () => void;
}

// Control sequences of xterm.
const esc = '\x1b[';
const [alternateScreen, normalScreen] = [`${esc}?1049h`, `${esc}?1049l`];
const [hideCursor, showCursor, saveCursor, restoreCursor] = [`${esc}?25l`, `${esc}?25h`, '\x1b7', '\x1b8'];
const [home, eraseRest, eraseBelow, eraseLine] = [`${esc}H`, `${esc}K`, `${esc}J`, `${esc}2K`];

/** Draws on the whole terminal, in one write and without clearing it first: that would flicker. */
export const screen = (output: Output): Surface => {
  output.write(alternateScreen + hideCursor);
  return {
    draw: (lines) => output.write(home + lines.map((line) => line + eraseRest).join('\r\n') + eraseBelow),
    close: () => output.write(showCursor + normalScreen),
  };
};

/**
 * Reserves the bottom row of a terminal for a status line.
 *
 * The rows above become a scrolling region (DECSTBM), as in apt, so no output can overwrite the line, not even that of
 * another program such as `jq`.
 */
export const pinnedLine = (output: Output): Surface => {
  const bottom = (): number => sizeOf(output).rows;
  const at = (row: number, text: string): string => `${saveCursor}${esc}${row};1H${eraseLine}${text}${restoreCursor}`;
  const region = (): string => `${saveCursor}${esc}1;${bottom() - 1}r${restoreCursor}`;
  const noRegion = `${saveCursor}${esc}r${restoreCursor}`;
  let row = bottom();
  const onResize = (): void => {
    output.write(`${noRegion}${at(Math.min(row, bottom()), '')}${region()}`);
    row = bottom();
  };
  output.on('resize', onResize);
  // If the cursor is on the bottom row, the newline scrolls it up into the region.
  output.write(`\n${region()}${esc}1A`);
  return {
    draw: ([line = '']) => output.write(at(row, line)),
    close: () => {
      output.off('resize', onResize);
      output.write(`${noRegion}${at(row, '')}`);
    },
  };
};

const endKeys = /[q\x03]/i;

/**
 * Makes the keys q and Ctrl-C interrupt a command that draws a full screen, if stdin is a terminal.
 *
 * Reads Ctrl-C as a key instead of a signal: the signal would also kill the shell between npm and the command (`npm
 * start`, `npx`), and npm would return 130.
 */
export const withKeys = (context: CliContext): CliContext => {
  const { stdin, interrupt$ } = context;
  if (!stdin.isTTY) return context;
  const keys$ = defer(() => {
    stdin.setRawMode?.(true);
    // A closed terminal causes errors, even at the end, and they'd crash the process if nothing listened.
    stdin.on('error', noop);
    const gone$ = fromEvent(stdin, 'error').pipe(mergeMap((error) => throwError(() => error)));
    return merge(fromEvent(stdin, 'data').pipe(mergeMap((typed) => String(typed))), gone$);
  });
  const typed$ = keys$.pipe(
    finalize(() => {
      stdin.setRawMode?.(false);
      stdin.pause();
    }),
    filter((key) => endKeys.test(key)),
    map(() => 'SIGINT' as const),
    // The terminal is gone, for example because the ssh session was lost.
    catchError(() => of('SIGHUP' as const)),
  );
  return { ...context, interrupt$: merge(interrupt$, typed$) };
};
