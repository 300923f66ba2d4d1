import type { Writable } from 'node:stream';
import { defer, firstValueFrom, fromEvent, merge, NEVER, noop, type Observable, of, switchMap, tap, timer } from 'rxjs';
import { CliError, ExitCode, localError } from './errors.js';
import { type CliContext, columnsOf, type Interrupt } from './terminal.js';
import { wrapped } from './text.js';

/** Why a command ends. `output-closed`: whatever read stdout has exited (`| head`). */
export type Ending =
  | { readonly kind: 'count-reached' | 'time-up' | 'output-closed' | 'interrupted' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Writes a result as one JSON object or as lines for people. See {@link writeText}. */
export const writeResult = (
  context: CliContext,
  json: boolean | undefined,
  result: unknown,
  lines: readonly string[],
): Promise<void> =>
  json ? writeWhole(context.stdout, `${JSON.stringify(result)}\n`) : writeText(context, `${lines.join('\n')}\n`);

/**
 * Writes a text for people to stdout, and resolves when it has left. Rejects if it can't be written, or if the reader
 * has exited.
 *
 * @param plainColumns - where its lines wrap in a pipe or a file
 */
export const writeText = ({ stdout }: CliContext, text: string, plainColumns?: number): Promise<void> =>
  writeWhole(stdout, wrapped(text, columnsOf(stdout, plainColumns)));

const writeWhole = (stdout: Writable, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    stdout.write(text, (error) => (error ? reject(cantWrite(error)) : resolve()));
  });

/** How long an interrupted command gives a slow reader of stdout, in ms. */
export const lastFlushMs = 1_000;

/**
 * Watches the outputs of a command from its start until they've left: a process that exits earlier cuts them.
 *
 * `context` is for the command. `left` waits for stdout, or after an interrupt for at most `lastFlushMs`. It returns what
 * has kept stdout from being complete, unless its reader has exited: a result that isn't complete then has rejected.
 */
export const watchOutputs = (given: CliContext) => {
  const { stdout, stderr } = given;
  let broken: unknown;
  let interrupted: { readonly signal: Interrupt; readonly atMs: number } | undefined;
  // Without a listener, the `error` event of an output whose reader has exited would crash the process.
  stdout.on('error', (error) => (broken ??= error));
  stderr.on('error', noop);
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
 *
 * @param complete$ - emits after the last data has been passed to the stream
 * @param broken - emits the error when the stream breaks, or at once if it's already broken
 */
export const written = async (
  stream: Writable,
  late$: Observable<unknown> = NEVER,
  complete$: Observable<unknown> = of(undefined),
  broken: Observable<unknown> | Promise<unknown> = brokenOf(stream),
): Promise<Ending | undefined> => {
  const written$ = complete$.pipe(switchMap(() => new Promise((done) => stream.write('', done))));
  const error = await firstValueFrom(merge(broken, written$, late$));
  return error instanceof Error ? brokenBy(error) : undefined;
};

/** Emits when a slow reader of stdout has had its time: some after an interrupt. */
export const lateAfter = ({ kind }: Ending): Observable<unknown> =>
  kind === 'interrupted' ? timer(lastFlushMs) : NEVER;

/** Returns how a broken output ends the command. */
export const brokenBy = (error: unknown): Ending =>
  isReaderGone(error) ? { kind: 'output-closed' } : { kind: 'failed', error: cantWrite(error) };

const cantWrite = (error: unknown): CliError => localError("Can't write to stdout", error);

const isReaderGone = (error: unknown): boolean =>
  ['EPIPE', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Emits the error of a stream that breaks, at once if it's already broken. */
export const brokenOf = (stream: Writable): Observable<unknown> =>
  stream.destroyed ? of(stream.errored) : merge(fromEvent(stream, 'error'), fromEvent(stream, 'close'));
