import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { defer, filter, finalize, first, from, lastValueFrom, map, type Observable, switchMap } from 'rxjs';
import { take, takeWhile } from 'rxjs';
import type { Feed, Frame } from '../index.js';
import { feedLog, type LogRecord, type ReadOptions } from '../log/index.js';
import { marketBatches$, pendingTransactions$ } from '../testing/index.js';
import { sourceRules } from '../testing/sources.js';
import { CliError, ExitCode, localError, usageError } from './errors.js';
import { anyText, decimal, oneOf, option, parsed, speed, type ValuesOf, whole } from './options.js';

interface Source {
  readonly payloads$: Observable<string | Uint8Array>;
  readonly description: string;
}

/** What the local service sends. `feed` is the one to listen to. */
export type Payloads = Readonly<Record<Feed, Source>> & { readonly feed: Feed };

export const payloadOptions = {
  rate: option('--rate <N>', parsed(decimal, sourceRules.rate), 'frames per second of each feed (default: 20)'),
  seed: option('--seed <N>', parsed(whole, sourceRules.seed), 'the same seed generates the same payloads (default: 1)'),
  source: option('--source <FILE|->', anyText, 'send the lines of a file, or of stdin, one payload per line'),
  feed: option('--feed <market|raw>', oneOf('market', 'raw'), 'the feed of --source (default: market)'),
  replay: option(
    '--replay <LOG>',
    anyText,
    'send a log of record: each frame to its feed, with the recorded intervals',
  ),
  speed: option('--speed <N|max>', speed, 'the speed of --replay, as a multiple (default: 1)'),
};
type PayloadValues = ValuesOf<typeof payloadOptions>;

type Clients = (feed: Feed) => Observable<unknown>;

export const payloadsFor = async (values: PayloadValues, stdin: Readable, clients: Clients): Promise<Payloads> => {
  checkOptions(values);
  const { rate, seed = 1, source, feed = 'market', replay } = values;
  if (replay !== undefined) return recordedPayloads(replay, values.speed ?? 1, clients);
  const description = `generated payloads, ${rate ?? 20} a second (seed ${seed})`;
  const generated = {
    market: { payloads$: marketBatches$({ rate, seed }), description },
    raw: { payloads$: pendingTransactions$({ rate, seed }), description },
    feed,
  };
  return source === undefined
    ? generated
    : { ...generated, [feed]: await openLines(source, rate, stdin, clients(feed)) };
};

const checkOptions = ({ feed, source, replay, speed: times, rate, seed }: PayloadValues): void => {
  if (feed !== undefined && source === undefined) throw usageError('--feed is the feed of --source: use both.');
  if (times !== undefined && replay === undefined) throw usageError('--speed is the speed of --replay: use both.');
  if (replay === undefined) return;
  if (source !== undefined) throw usageError("--replay and --source can't be combined: use one of them.");
  if (rate !== undefined || seed !== undefined)
    throw usageError("--rate and --seed don't apply to --replay. Use --speed.");
};

/** Plays back each feed's recorded payloads at the recorded intervals, starting when its first client connects. */
const recordedPayloads = async (path: string, times: number, clients: Clients): Promise<Payloads> => {
  const { feeds, isComplete } = await feedsIn(path);
  if (isComplete && feeds.length === 0)
    throw new CliError(ExitCode.failed, `The log of --replay (${path}) contains no frame. Use one that does.`);
  const pace = { 1: 'as recorded', [Infinity]: 'as fast as possible' }[times] ?? `${times} times as fast`;
  const sourceOf = (feed: Feed): Source => ({
    description:
      isComplete && !feeds.includes(feed)
        ? `nothing: ${path} contains no frame of this feed`
        : `its frames in ${path}, ${pace}, from when the first client connects`,
    payloads$: clients(feed).pipe(
      take(1),
      // Starts at its first frame, so that the replay doesn't sit through the time before it.
      switchMap(() => framesOf(path, { speed: Infinity }).pipe(first((frame) => frame.feed === feed))),
      switchMap(({ offset }) => framesOf(path, { speed: times, from: { offset } })),
      filter((frame) => frame.feed === feed),
      map((frame) => (frame.isBinary ? frame.data : frame.text())),
    ),
  });
  return { market: sourceOf('market'), raw: sourceOf('raw'), feed: feeds[0] ?? 'market' };
};

const framesOf = (path: string, options: ReadOptions) =>
  feedLog(path)
    .read$({ ...options, follow: false })
    .pipe(filter((record): record is Extract<LogRecord, Frame> => record.type === 'frame'));

const searchedBytes = 16 * 1024 * 1024;

/** Returns the feeds of a log. `isComplete`: found both or reached the end of the log, rather than the limit. */
const feedsIn = async (path: string) => {
  const found = new Set<Feed>();
  let bytes = 0;
  const searched$ = framesOf(path, {}).pipe(
    takeWhile(({ feed, byteLength }) => {
      found.add(feed);
      bytes += byteLength;
      return bytes < searchedBytes && found.size < 2;
    }),
  );
  await lastValueFrom(searched$, { defaultValue: undefined });
  return { feeds: [...found], isComplete: bytes < searchedBytes };
};

const fileRate = 20;

/**
 * Opens a source of payloads, one per line. Sends the lines of a pipe as they arrive. Starts a file, or any source with
 * a rate, when the first client connects, so that this client receives the first line.
 */
export const openLines = async (
  source: string,
  rate: number | undefined,
  stdin: Readable,
  firstClient$: Observable<unknown>,
): Promise<Source> => {
  const isFile = source !== '-' && (await isRegular(source));
  const pace = rate ?? (isFile ? fileRate : undefined);
  const lines$ = defer(() => {
    const stream = source === '-' ? stdin : createReadStream(source);
    const abort = new AbortController();
    return from(pace === undefined ? linesOf(stream) : pacedAt(pace, linesOf(stream), abort.signal)).pipe(
      finalize(() => {
        abort.abort();
        stream.destroy();
      }),
    );
  });
  const when = pace === undefined ? 'as they arrive' : `${pace} a second from when the first client connects`;
  return {
    payloads$:
      pace === undefined
        ? lines$
        : firstClient$.pipe(
            take(1),
            switchMap(() => lines$),
          ),
    description: `the lines of ${source === '-' ? 'stdin' : source}, ${when}`,
  };
};

const isRegular = async (file: string): Promise<boolean> => {
  try {
    await access(file, constants.R_OK);
    const stats = await stat(file);
    if (stats.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
    return stats.isFile();
  } catch (error) {
    throw localError("Can't read the file of --source", error);
  }
};

/** The default of `maxFrameBytes`: a client refuses larger frames. */
const maxLineBytes = 16 * 1024 * 1024;

/**
 * Yields the lines of a stream, except empty ones. Splits at newlines only: `node:readline` would also split at
 * U+2028, which JSON may contain.
 *
 * @throws Error for a line of more than 16 MiB, before the rest of it is read
 */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let [line, bytes] = ['', 0];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const [end = '', ...starts] = decoder.decode(chunk, { stream: true }).split('\n');
    line += end;
    bytes += Buffer.byteLength(end);
    if (bytes > maxLineBytes) throw new Error(tooLong);
    for (const start of starts) {
      yield* payloadIn(line);
      [line, bytes] = [start, Buffer.byteLength(start)];
    }
  }
  yield* payloadIn(line + decoder.decode());
}

const payloadIn = (line: string): readonly string[] => [line.replace(/\r$/, '')].filter(Boolean);

const tooLong =
  'a line has more than 16 MiB, the largest frame that a client accepts (`maxFrameBytes`). ' +
  'Each payload ends with a newline: add the missing ones, or make the payloads smaller';

const maxCatchUpMs = 100;

/** Yields at most this many values per second. Doesn't pull a value before it's due, so a fast source waits. */
export async function* pacedAt<T>(rate: number, values: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const stepMs = 1_000 / rate;
  let dueMs = performance.now();
  for await (const value of values) {
    const waitMs = dueMs - performance.now();
    // Timers can't be finer than 1 ms, so at a high rate one turn of the event loop sends several values.
    if (waitMs >= 1) await delay(waitMs, undefined, { signal });
    yield value;
    dueMs = Math.max(dueMs, performance.now() - maxCatchUpMs) + stepMs;
  }
}
