import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { type Readable, Writable } from 'node:stream';
import { defer, filter, finalize, fromEvent, map, merge, noop, type Observable, Subject } from 'rxjs';
import { ExitCode } from './errors.js';
import { type Line, logLine, printed, wrapped } from './text.js';

/** The environment, streams and signals of the process. Tests pass their own. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Emits SIGINT and the like. As long as nothing subscribes, a signal ends the process. */
  readonly interrupt$: Observable<Interrupt>;
}

export type Input = Readable & Partial<Pick<NodeJS.ReadStream, 'isTTY' | 'setRawMode'>>;
export type Output = Writable & Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows'>>;

export const interrupts = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;
export type Interrupt = (typeof interrupts)[number];

export const processContext = (process: NodeJS.Process): CliContext => {
  const { env, stdin } = process;
  const [stdout, stderr] = [outputOf(process.stdout), outputOf(process.stderr)];
  const interrupt$ = new Subject<Interrupt>();
  for (const signal of interrupts)
    process.on(signal, () => {
      // The terminal prints `^C` at the cursor. The newline keeps the next line, or the shell's prompt, off that row.
      if (signal === 'SIGINT') [stderr, stdout].find(({ isTTY }) => isTTY)?.write('\n');
      if (interrupt$.observed) interrupt$.next(signal);
      else process.exit(ExitCode.interrupted);
    });
  return { env, stdin, stdout, stderr, interrupt$ };
};

/**
 * Returns an output that writes everything or fails. Terminals, pipes and sockets do. Node's stream for a file ignores
 * how much of a write the system has taken, so it loses the rest without an error when the disk is nearly full.
 */
const outputOf = (stream: Output & { readonly fd?: number }): Output => {
  const { fd } = stream;
  if (fd === undefined || stream instanceof Socket) return stream;
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      try {
        for (let at = 0; at < chunk.length;) at += writeSync(fd, chunk, at);
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
};

/** Whether a stream is a terminal that understands control sequences. */
export const isTerminal = (output: Output, { env }: Pick<CliContext, 'env'>): boolean =>
  output.isTTY === true && env['TERM'] !== 'dumb';

/** See https://no-color.org. */
export const hasColors = (output: Output, context: Pick<CliContext, 'env'>): boolean =>
  isTerminal(output, context) && !context.env['NO_COLOR'];

export type TerminalSize = Readonly<Record<'columns' | 'rows', number>>;

/** Some terminals report 0. */
const sizeOf = ({ columns = 0, rows = 0 }: Output): TerminalSize => ({
  columns: columns > 0 ? columns : 80,
  rows: rows > 0 ? rows : 24,
});

/** Returns how wide a text may be: as wide as a terminal. In a pipe or a file, most lines stay whole. */
export const columnsOf = (output: Output, plainColumns = Infinity): number =>
  output.isTTY ? sizeOf(output).columns : plainColumns;

/** Where a help text wraps in a pipe or a file. */
export const helpColumns = 80;

export const say = (output: Output, text: string): boolean => output.write(wrapped(text, columnsOf(output)));

/** Writes a summary to stderr: lines on a terminal, one line in a log. */
export const saySummary = (context: CliContext, lines: string, line: string): boolean =>
  say(context.stderr, isTerminal(context.stderr, context) ? lines : logLine(line));

export type View<S> = Readonly<{ show: (state: S) => void; close: () => void }>;
export type StatusOptions = Readonly<{ quiet?: boolean | undefined; status?: boolean | undefined }>;

const [logEveryMs, maxLogColumns] = [10_000, 200];

/**
 * Shows a state on stderr: on the bottom line of a terminal, or in a log.
 *
 * @param events - what a log shows at once. If it's all that a log shows, `isLogged` is `false`
 */
export const lineView = <S>(
  { quiet, status }: StatusOptions,
  context: CliContext,
  line: (state: S) => Line,
  events: (state: S) => readonly string[] = () => [],
  isLogged = true,
): View<S> => {
  const { stderr } = context;
  if (quiet) return { show: noop, close: noop };
  if (status && isTerminal(stderr, context)) return drawn(stderr, context, pinnedLine, (state) => [line(state)]);
  const log = (state: S, isDue: boolean) => [...events(state), ...(isDue ? [printed(line(state), maxLogColumns)] : [])];
  return logged(stderr, log, isLogged ? logEveryMs : Infinity);
};

/** Shows a state as log lines: `log` returns those for what's new, plus the status if it's due. */
export const logged = <S>(
  output: Output,
  log: (state: S, isDue: boolean) => readonly string[],
  everyMs: number,
  firstMs = everyMs,
): View<S> => {
  let dueAt = Date.now() + firstMs;
  return {
    show: (state) => {
      const isDue = Date.now() >= dueAt;
      if (isDue) dueAt = Date.now() + everyMs;
      for (const text of log(state, isDue)) say(output, logLine(text));
    },
    close: noop,
  };
};

/** Draws a state, also when the size of the terminal changes. */
export const drawn = <S>(
  output: Output,
  context: CliContext,
  surfaceOf: (output: Output) => Surface,
  lines: (state: S, size: TerminalSize) => readonly Line[],
): View<S> => {
  const surface = surfaceOf(output);
  let draw: () => void = noop;
  const onResize = (): void => draw();
  output.on('resize', onResize);
  return {
    show: (state) => {
      draw = () => {
        const size = sizeOf(output);
        const text = (line: Line) => printed(line, size.columns - 1, hasColors(output, context));
        surface.draw(lines(state, size).map(text));
      };
      draw();
    },
    close: () => {
      output.off('resize', onResize);
      surface.close();
    },
  };
};

type Surface = Readonly<{ draw: (lines: readonly string[]) => void; close: () => void }>;

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
 * Reserves the bottom row of a terminal. The rows above become a scrolling region (DECSTBM), as in apt, so no output can
 * overwrite the line, not even that of another program such as `jq`.
 */
export const pinnedLine = (output: Output): Surface => {
  const at = (row: number, text: string): string => `${saveCursor}${esc}${row};1H${eraseLine}${text}${restoreCursor}`;
  const regionAbove = (row: number): string => `${saveCursor}${esc}1;${row - 1}r${restoreCursor}`;
  const noRegion = `${saveCursor}${esc}r${restoreCursor}`;
  let bottom = sizeOf(output).rows;
  // If the cursor is on the bottom row, the newline scrolls it up into the region.
  output.write(`\n${regionAbove(bottom)}${esc}1A`);
  return {
    draw: ([line = '']) => {
      const { rows } = sizeOf(output);
      if (rows !== bottom) output.write(`${noRegion}${at(Math.min(bottom, rows), '')}${regionAbove(rows)}`);
      bottom = rows;
      output.write(at(bottom, line));
    },
    close: () => output.write(`${noRegion}${at(bottom, '')}`),
  };
};

/**
 * Makes q and Ctrl-C end a command that draws a full screen. Reads Ctrl-C as a key, because the signal would also kill
 * the shell between npm and the command (`npm start`, `npx`), and npm would return 130.
 */
export const withKeys = (context: CliContext): CliContext => {
  const { stdin, interrupt$ } = context;
  if (!stdin.isTTY) return context;
  const keys$ = defer(() => {
    stdin.setRawMode?.(true);
    // A closed terminal causes errors, even at the end, and they'd crash the process if nothing listened.
    stdin.on('error', noop);
    const endKeys$ = fromEvent(stdin, 'data').pipe(filter((typed) => /[q\x03]/i.test(String(typed))));
    // The terminal is gone, for example because the ssh session was lost.
    const gone$ = fromEvent(stdin, 'error');
    return merge(endKeys$.pipe(map(() => 'SIGINT' as const)), gone$.pipe(map(() => 'SIGHUP' as const)));
  }).pipe(
    finalize(() => {
      stdin.setRawMode?.(false);
      stdin.pause();
    }),
  );
  return { ...context, interrupt$: merge(interrupt$, keys$) };
};
