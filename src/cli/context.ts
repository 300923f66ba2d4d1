import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { type Readable, Writable } from 'node:stream';
import { fromEvent, map, merge, type Observable, share, tap } from 'rxjs';

/** The environment, streams and signals of the process. Tests pass their own. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Emits SIGINT and the like. As long as nothing subscribes, a signal has its default effect. */
  readonly interrupt$: Observable<Interrupt>;
}

interface Input extends Readable {
  readonly isTTY?: boolean | undefined;
  readonly setRawMode?: ((isRaw: boolean) => unknown) | undefined;
}

export interface Output extends Writable {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** The signals that end a command. */
export const interrupts = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;
export type Interrupt = (typeof interrupts)[number];

export const processContext = (process: NodeJS.Process): CliContext => {
  const { env, stdin } = process;
  const [stdout, stderr] = [outputOf(process.stdout), outputOf(process.stderr)];
  const interrupt$ = merge(...interrupts.map((signal) => fromEvent(process, signal).pipe(map(() => signal)))).pipe(
    tap((signal) => {
      // The terminal prints `^C` at the cursor. The newline keeps the next line, or the shell's prompt, off that row.
      if (signal === 'SIGINT') [stderr, stdout].find(({ isTTY }) => isTTY)?.write('\n');
    }),
    // All subscribers share one newline.
    share(),
  );
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

/** Returns whether a stream is a terminal that understands control sequences. */
export const isTerminal = (output: Output, { env }: Pick<CliContext, 'env'>): boolean =>
  output.isTTY === true && env['TERM'] !== 'dumb';

/** Returns whether to use colors on a stream (https://no-color.org). */
export const hasColors = (output: Output, context: Pick<CliContext, 'env'>): boolean =>
  isTerminal(output, context) && !context.env['NO_COLOR'];
