import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { defer, finalize, from, type Observable, switchMap, take } from 'rxjs';
import { localError } from '../cli-error.js';
import { linesOf } from './lines.js';
import { pacedAt } from './paced.js';

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
const defaultFileRate = 20;

/** A source, and what to say of it. */
export interface LineSource {
  readonly lines$: Observable<string>;
  readonly description: string;
}

/**
 * Opens a source of payloads, one a line. A regular file begins with the first client, so that nobody misses its beginning;
 * what comes out of a pipe is passed on as it comes.
 *
 * @throws CliError when the file cannot be read
 */
export const openSource = async ({ source, rate, stdin, firstClient$ }: SourceOptions): Promise<LineSource> => {
  if (source === '-') return { lines$: lines$(() => stdin, rate), description: `the lines of stdin, ${pace(rate)}` };
  const isRegular = await checkReadable(source);
  const open = (): Readable => createReadStream(source);
  if (!isRegular) return { lines$: lines$(open, rate), description: `the lines of ${source}, ${pace(rate)}` };
  const fileRate = rate ?? defaultFileRate;
  return {
    lines$: firstClient$.pipe(
      take(1),
      switchMap(() => lines$(open, fileRate)),
    ),
    description: `the lines of ${source}, ${pace(fileRate)} from when the first client connects`,
  };
};

const pace = (rate: number | undefined): string => (rate === undefined ? 'as they come' : `${rate} a second`);

const checkReadable = async (file: string): Promise<boolean> => {
  try {
    await access(file, constants.R_OK);
    const stats = await stat(file);
    if (stats.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
    return stats.isFile();
  } catch (error) {
    throw localError('Cannot read the file of --source', error);
  }
};

const lines$ = (open: () => Readable, rate: number | undefined): Observable<string> =>
  defer(() => {
    const stream = open();
    const abort = new AbortController();
    const lines = linesOf(stream);
    return from(rate === undefined ? lines : pacedAt(rate, lines, abort.signal)).pipe(
      finalize(() => {
        abort.abort();
        stream.destroy();
      }),
    );
  });
