import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { defer, finalize, from, type Observable, switchMap, take } from 'rxjs';
import { localError } from '../cli-error.js';

/** The source of the payloads of `serve --source`. */
export interface LineSourceOptions {
  /** A file, or `-` for stdin. */
  readonly source: string;
  /** Payloads per second. By default, the lines of a pipe are sent as they arrive, and the lines of a file at 20 per second. */
  readonly rate: number | undefined;
  readonly stdin: Readable;
  /** Emits when a client has connected. A file, and any source with a rate, waits for this. */
  readonly firstClient$: Observable<unknown>;
}

/** The default rate of a file: the rate of generated payloads. */
const fileRate = 20;

/** The lines of a source, and their description. */
export interface LineSource {
  readonly lines$: Observable<string>;
  readonly description: string;
}

/**
 * Opens a source of payloads, one per line. The lines of a pipe are sent as they arrive. A file, and any source with a rate, begins when the
 * first client connects, so that the client receives the first line.
 *
 * @throws CliError when the file cannot be read
 */
export const openLineSource = async ({ source, rate, stdin, firstClient$ }: LineSourceOptions): Promise<LineSource> => {
  const isFile = source !== '-' && (await isRegular(source));
  const open = (): Readable => (source === '-' ? stdin : createReadStream(source));
  const lines = `the lines of ${source === '-' ? 'stdin' : source}`;
  const pace = rate ?? (isFile ? fileRate : undefined);
  if (pace === undefined) return { lines$: lines$(open, (values) => values), description: `${lines}, as they arrive` };
  const paced$ = lines$(open, (values, signal) => pacedAt(pace, values, signal));
  return {
    lines$: firstClient$.pipe(
      take(1),
      switchMap(() => paced$),
    ),
    description: `${lines}, ${pace} a second from when the first client connects`,
  };
};

const isRegular = async (file: string): Promise<boolean> => {
  try {
    await access(file, constants.R_OK);
    const stats = await stat(file);
    if (stats.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
    return stats.isFile();
  } catch (error) {
    throw localError('Cannot read the file of --source', error);
  }
};

type Pace = (lines: AsyncIterable<string>, signal: AbortSignal) => AsyncIterable<string>;

const lines$ = (open: () => Readable, pace: Pace): Observable<string> =>
  defer(() => {
    const stream = open();
    const abort = new AbortController();
    return from(pace(linesOf(stream), abort.signal)).pipe(
      finalize(() => {
        abort.abort();
        stream.destroy();
      }),
    );
  });

/**
 * Yields the lines of a stream, without empty lines. Only a newline ends a line: `node:readline` would also split at U+2028, which JSON may
 * contain.
 */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const text = rest + decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    yield* payloadsIn(text.slice(0, end));
  }
  yield* payloadsIn(rest + decoder.decode());
}

const payloadsIn = (lines: string): readonly string[] =>
  lines
    .split('\n')
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line !== '');

/** The maximum time that is caught up after a delay, in ms. A larger value would send many payloads at once. */
const maxCatchUpMs = 100;

/**
 * Yields values at a maximum rate. It requests the next value only when it is due, so a fast source waits.
 *
 * @param rate - values per second
 * @param signal - ends the wait
 */
export async function* pacedAt<T>(rate: number, values: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const stepMs = 1_000 / rate;
  let dueMs = performance.now();
  for await (const value of values) {
    const waitMs = dueMs - performance.now();
    // Timers have a resolution of 1 ms. At a high rate, several values are sent in one turn.
    if (waitMs >= 1) await delay(waitMs, undefined, { signal });
    yield value;
    dueMs = Math.max(dueMs, performance.now() - maxCatchUpMs) + stepMs;
  }
}
