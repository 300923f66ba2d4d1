import type { Writable } from 'node:stream';
import { firstValueFrom, fromEvent, merge, NEVER, noop, type Observable, of, switchMap, tap, timer } from 'rxjs';
import type { CliContext, Interrupt } from './context.js';
import { CliError, ExitCode, localError } from './errors.js';

/** Why a command ends. `output-closed`: whatever read stdout has exited (`| head`). */
export type Ending =
  | { readonly kind: 'count-reached' | 'time-up' | 'output-closed' }
  | { readonly kind: 'interrupted'; readonly signal: Interrupt }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Writes a result as one JSON object or as lines. See {@link writeText}. */
export const writeResult = (
  context: CliContext,
  json: boolean | undefined,
  result: unknown,
  lines: readonly string[],
): Promise<void> =>
  writeText(context, json ? `${JSON.stringify(result)}\n` : lines.map((line) => `${line}\n`).join(''));

/** Writes a text to stdout, and resolves when it has left. Rejects if it can't be written, or if the reader has exited. */
export const writeText = ({ stdout }: Pick<CliContext, 'stdout'>, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    stdout.write(text, (error) => (error ? reject(cantWrite(error)) : resolve()));
  });

/**
 * Watches the outputs of a command from its start until they've left: a process that exits earlier cuts them.
 *
 * `context` is for the command. `left` waits for stdout, or after an interrupt for at most `lastFlushMs`. It returns what
 * has kept stdout from being complete, unless its reader has exited: a result that isn't complete then has rejected.
 */
export const watchOutputs = (given: CliContext) => {
  const { stdout, stderr, interrupt$ } = given;
  let broken: unknown;
  let interrupted: { readonly signal: Interrupt; readonly atMs: number } | undefined;
  // Without a listener, the `error` event of an output whose reader has exited would crash the process.
  stdout.on('error', (error) => (broken ??= error));
  stderr.on('error', noop);
  const context: CliContext = {
    ...given,
    interrupt$: interrupt$.pipe(tap((signal) => (interrupted = { signal, atMs: performance.now() }))),
  };
  const patience = (): number | undefined =>
    interrupted && Math.max(0, interrupted.atMs + lastFlushMs - performance.now());
  const left = async (): Promise<CliError | undefined> => {
    const last = await written(stdout, patience());
    const ending = broken === undefined ? last : brokenBy(broken);
    if (ending !== undefined) return ending.kind === 'failed' ? (ending.error as CliError) : undefined;
    if (interrupted === undefined || stdout.writableLength === 0) return undefined;
    const { signal } = interrupted;
    return new CliError(ExitCode[signal], `${signal} came before the reader of stdout had taken all output.`);
  };
  return { context, left, errorsLeft: () => written(stderr, patience()) };
};

/** How long an interrupted command gives a slow reader of stdout, in ms. */
export const lastFlushMs = 1_000;

/**
 * Resolves when a stream has written all its data, when it breaks, or when the time is up. Returns how a broken stream
 * ends the command.
 *
 * @param complete$ - emits after the last data has been passed to the stream
 * @param broken - emits the error when the stream breaks, or at once if it's already broken
 */
export const written = async (
  stream: Writable,
  withinMs?: number,
  complete$: Observable<unknown> = of(undefined),
  broken: Observable<unknown> | Promise<unknown> = brokenOf(stream),
): Promise<Ending | undefined> => {
  const written$ = complete$.pipe(switchMap(() => new Promise((done) => stream.write('', done))));
  const late$ = withinMs === undefined ? NEVER : timer(withinMs);
  const error = await firstValueFrom(merge(broken, written$, late$));
  return error instanceof Error ? brokenBy(error) : undefined;
};

/** Returns how a broken output ends the command. */
export const brokenBy = (error: unknown): Ending =>
  isReaderGone(error) ? { kind: 'output-closed' } : { kind: 'failed', error: cantWrite(error) };

const cantWrite = (error: unknown): CliError => localError("Can't write to stdout", error);

const isReaderGone = (error: unknown): boolean =>
  ['EPIPE', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Emits the error of a stream that breaks, at once if it's already broken. */
export const brokenOf = (stream: Writable): Observable<unknown> =>
  stream.destroyed ? of(stream.errored) : merge(fromEvent(stream, 'error'), fromEvent(stream, 'close'));
