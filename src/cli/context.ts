import type { Readable, Writable } from 'node:stream';
import { fromEvent, map, merge, type Observable } from 'rxjs';

/** The environment, streams and signals of the process. Tests replace them. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Emits a signal that asks the command to end. Without a subscriber, a signal has its default effect. */
  readonly interrupt$: Observable<Interrupt>;
}

/** A stdin that may be a terminal. */
export type Input = Readable & {
  readonly isTTY?: boolean | undefined;
  readonly setRawMode?: ((isRaw: boolean) => unknown) | undefined;
};

/** A stream that may be a terminal. */
export type Output = Writable & {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** The signals that ask the command to end, with the exit codes that shells expect. */
export const interrupts = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
/** The name of one of these signals. */
export type Interrupt = keyof typeof interrupts;

/** Creates the context of a real process. */
export const processContext = (process: NodeJS.Process): CliContext => {
  const signals = Object.keys(interrupts) as Interrupt[];
  return {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    interrupt$: merge(...signals.map((signal) => fromEvent(process, signal).pipe(map(() => signal)))),
  };
};

/** Returns whether a stream is a terminal that supports control sequences. */
export const isTerminal = (output: Output, { env }: Pick<CliContext, 'env'>): boolean =>
  output.isTTY === true && env['TERM'] !== 'dumb';

/** Returns whether to use colours on a stream (https://no-color.org). */
export const hasColors = (output: Output, context: Pick<CliContext, 'env'>): boolean =>
  isTerminal(output, context) && !context.env['NO_COLOR'];
