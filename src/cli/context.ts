import type { Readable, Writable } from 'node:stream';
import { fromEvent, map, merge, type Observable } from 'rxjs';

/** What the command is told and what it says go through here, so that a test can be the world. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Emits when somebody asks the command to end. While nobody is subscribed, a signal does what it does by default. */
  readonly interrupt$: Observable<Interrupt>;
}

/** A stream that may be a terminal. */
export type Output = Writable & {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** The signals that ask for an end, and the exit code that a shell expects of each. */
export const interrupts = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
/** Names one of those signals. */
export type Interrupt = keyof typeof interrupts;

/** Makes the context of a real process. */
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

/** Tells whether a stream is a terminal that can be drawn on. */
export const isTerminal = (output: Output, { env }: Pick<CliContext, 'env'>): boolean =>
  output.isTTY === true && env['TERM'] !== 'dumb';

/** Tells whether colours are wanted there (https://no-color.org). */
export const hasColors = (output: Output, context: Pick<CliContext, 'env'>): boolean =>
  isTerminal(output, context) && !context.env['NO_COLOR'];
