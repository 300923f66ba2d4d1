import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { defer, finalize, from, type Observable, switchMap, take } from 'rxjs';
import { localError } from '../cli-error.js';
import { linesOf } from './lines.js';
import { pacedAt } from './paced-lines.js';

/** Where the payloads of `serve --source` come from, and how fast. */
export interface SourceOptions {
  /** A file, or `-` for stdin. */
  readonly source: string;
  /** Payloads a second; by default a pipe has its own pace and a file the service's. */
  readonly rate: number | undefined;
  readonly stdin: Readable;
  /** Emits when a client has connected: what a file waits for. */
  readonly firstClient$: Observable<unknown>;
}

/** The pace of a file, which has none of its own: that of the made-up payloads. */
const fileRate = 20;

/** A source, and what to say of it. */
export interface LineSource {
  readonly lines$: Observable<string>;
  readonly description: string;
}

/**
 * Opens a source of payloads, one a line. What comes out of a pipe is passed on as it comes; a file, and whatever has a rate,
 * begins with the first client, so that nobody misses its beginning.
 *
 * @throws CliError when the file cannot be read
 */
export const openSource = async ({ source, rate, stdin, firstClient$ }: SourceOptions): Promise<LineSource> => {
  const isFile = source !== '-' && (await isRegular(source));
  const open = (): Readable => (source === '-' ? stdin : createReadStream(source));
  const lines = `the lines of ${source === '-' ? 'stdin' : source}`;
  const pace = rate ?? (isFile ? fileRate : undefined);
  if (pace === undefined) return { lines$: lines$(open, (values) => values), description: `${lines}, as they come` };
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
