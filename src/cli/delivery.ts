import type { Writable } from 'node:stream';
import { defer, filter, firstValueFrom, fromEvent, map, merge, NEVER, type Observable, of, tap, timer } from 'rxjs';
import { CliError, ExitCode, localError } from './errors.js';
import { type CliContext, columnsOf, type Interrupt } from './terminal.js';
import { wrapped } from './text.js';

/** Why a command ends. `output-closed`: whatever read stdout has exited (`| head`). */
export type Ending =
  | { readonly kind: 'count-reached' | 'time-up' | 'output-closed' | 'interrupted' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Writes a result as one JSON object or as lines for people. See {@link writeText}. */
export const writeResult = (context: CliContext, json = false, result: unknown, lines: readonly string[]) =>
  json ? writeWhole(context.stdout, `${JSON.stringify(result)}\n`) : writeText(context, `${lines.join('\n')}\n`);

/** Writes a text for people to stdout, and resolves when it has left. Rejects if its reader has exited. */
export const writeText = ({ stdout }: CliContext, text: string, plainColumns?: number): Promise<void> =>
  writeWhole(stdout, wrapped(text, columnsOf(stdout, plainColumns)));

const writeWhole = (stdout: Writable, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    stdout.write(text, (error) => (error ? reject(cantWrite(error)) : resolve()));
  });

/** How long an interrupted command gives a slow reader of stdout. */
const lastFlushMs = 1_000;

/**
 * Watches the outputs of a command from its start until they've left: a process that exits earlier cuts them.
 *
 * `context` is for the command. `left` returns what has kept stdout from being complete, unless its reader has exited: a
 * result that isn't complete then has rejected.
 */
export const watchOutputs = (given: CliContext) => {
  const { stdout, stderr } = given;
  let broken: unknown;
  let interrupted: { readonly signal: Interrupt; readonly atMs: number } | undefined;
  // Without a listener, the `error` event of an output whose reader has exited would crash the process.
  stdout.on('error', (error) => (broken ??= error));
  stderr.on('error', () => undefined);
  const context: CliContext = {
    ...given,
    interrupt$: given.interrupt$.pipe(tap((signal) => (interrupted = { signal, atMs: performance.now() }))),
  };
  const late$ = defer(() =>
    interrupted ? timer(Math.max(0, interrupted.atMs + lastFlushMs - performance.now())) : NEVER,
  );
  const left = async (): Promise<CliError | undefined> => {
    await written(stdout, late$);
    const cause = stdout.errored ?? broken;
    if (cause !== undefined) return isReaderGone(cause) ? undefined : cantWrite(cause);
    if (stdout.writableLength === 0) return undefined;
    const text = `${interrupted?.signal} came before the reader of stdout had taken all output.`;
    return new CliError(ExitCode.interrupted, text);
  };
  return { context, left, errorsLeft: () => written(stderr, late$) };
};

/**
 * Resolves when a stream has written all its data, when it breaks, or when it's too late. Returns how a broken stream
 * ends the command.
 */
export const written = async (stream: Writable, late$: Observable<unknown>): Promise<Ending | undefined> => {
  const written$ = defer(() => new Promise((done) => stream.write('', done)));
  const error = await firstValueFrom(merge(brokenOf(stream), written$, late$));
  return error instanceof Error ? brokenBy(error) : undefined;
};

/** Emits when a slow reader of stdout has had its time: some after an interrupt. */
export const lateAfter = ({ kind }: Ending): Observable<unknown> =>
  kind === 'interrupted' ? timer(lastFlushMs) : NEVER;

/** Emits when a signal arrives, when the reader of stdout exits, or when writing to stdout fails. */
export const endings$ = ({ interrupt$, stdout }: Pick<CliContext, 'interrupt$' | 'stdout'>): Observable<Ending> =>
  merge(
    interrupt$.pipe(map(() => ({ kind: 'interrupted' as const }))),
    brokenOf(stdout).pipe(
      filter((error) => error instanceof Error),
      map(brokenBy),
    ),
  );

const brokenBy = (error: Error): Ending =>
  isReaderGone(error) ? { kind: 'output-closed' } : { kind: 'failed', error: cantWrite(error) };

const cantWrite = (error: unknown): CliError => localError("Can't write to stdout", error);

const isReaderGone = (error: unknown): boolean =>
  ['EPIPE', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Emits the error of a stream that breaks, at once if it's already broken. */
export const brokenOf = (stream: Writable): Observable<unknown> =>
  defer(() =>
    stream.errored || stream.destroyed
      ? of(stream.errored)
      : merge(fromEvent(stream, 'error'), fromEvent(stream, 'close')),
  );
