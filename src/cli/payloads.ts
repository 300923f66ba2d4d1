import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { defer, filter, finalize, first, from, lastValueFrom, map, type Observable, scan } from 'rxjs';
import { switchMap, take, takeWhile } from 'rxjs';
import type { Feed, Frame } from '../index.js';
import { feedLog, type LogRecord, type ReadOptions } from '../log/index.js';
import { printable } from '../protocol/printable.js';
import { marketBatches$, pendingTransactions$ } from '../testing/index.js';
import { CliError, ExitCode, localError, usageError } from './errors.js';

/** The payloads of each feed, what to call them, and the feed to listen to. */
export interface Payloads {
  readonly sources: Readonly<Record<Feed, Observable<string | Uint8Array>>>;
  readonly descriptions: Readonly<Record<Feed, string>>;
  readonly feed: Feed;
}

interface SourceValues {
  readonly rate?: number | undefined;
  readonly seed?: number | undefined;
  readonly source?: string | undefined;
  readonly feed?: Feed | undefined;
  readonly replay?: string | undefined;
  readonly speed?: number | undefined;
}

type Clients = (feed: Feed) => Observable<unknown>;

/** Chooses the payloads of the feeds: from a log, from the lines of a source, or generated. */
export const payloadsFor = async (values: SourceValues, stdin: Readable, clients: Clients): Promise<Payloads> => {
  checkOptions(values);
  const { rate, seed = 1, source, feed = 'market', replay, speed = 1 } = values;
  if (replay !== undefined) return recordedPayloads(replay, speed, clients);
  const generated = `generated payloads, ${rate ?? 20} a second (seed ${seed})`;
  const sources = { market: marketBatches$({ rate, seed }), raw: pendingTransactions$({ rate, seed }) };
  const descriptions = { market: generated, raw: generated };
  if (source === undefined) return { sources, descriptions, feed };
  const { lines$, description } = await openLines(source, rate, stdin, clients(feed));
  return {
    sources: { ...sources, [feed]: lines$ },
    descriptions: { ...descriptions, [feed]: description },
    feed,
  };
};

const checkOptions = ({ feed, source, replay, speed, rate, seed }: SourceValues): void => {
  if (feed !== undefined && source === undefined) throw usageError('--feed is the feed of --source: use both.');
  if (speed !== undefined && replay === undefined) throw usageError('--speed is the speed of --replay: use both.');
  if (replay === undefined) return;
  if (source !== undefined) throw usageError("--replay and --source can't be combined: use one of them.");
  if (rate !== undefined || seed !== undefined)
    throw usageError("--rate and --seed don't apply to --replay. Use --speed.");
};

/** Plays back each feed's recorded payloads at the recorded intervals, starting when its first client connects. */
const recordedPayloads = async (path: string, speed: number, clients: Clients): Promise<Payloads> => {
  const { feeds, isComplete } = await feedsIn(path);
  if (isComplete && feeds.length === 0)
    throw new CliError(
      ExitCode.local,
      `The log of --replay (${printable(path)}) contains no frame. Use one that does.`,
    );
  const payloads = (feed: Feed) =>
    clients(feed).pipe(
      take(1),
      // Starts at its first frame, so that the replay doesn't sit through the time before it.
      switchMap(() => framesOf(path, { speed: Infinity }).pipe(first((frame) => frame.feed === feed))),
      switchMap(({ offset }) => framesOf(path, { speed, from: { offset } })),
      filter((frame) => frame.feed === feed),
      map((frame) => (frame.isBinary ? frame.data : frame.text())),
    );
  const description = (feed: Feed): string =>
    isComplete && !feeds.includes(feed)
      ? `nothing: ${printable(path)} contains no frame of this feed`
      : `its frames in ${printable(path)}, ${speedWords(speed)}, from when the first client connects`;
  return {
    sources: { market: payloads('market'), raw: payloads('raw') },
    descriptions: { market: description('market'), raw: description('raw') },
    feed: feeds[0] ?? 'market',
  };
};

const speedWords = (speed: number): string => {
  if (speed === 1) return 'as recorded';
  return speed === Infinity ? 'as fast as possible' : `${speed} times as fast`;
};

type RecordedFrame = Extract<LogRecord, Frame>;

const framesOf = (path: string, options: ReadOptions): Observable<RecordedFrame> =>
  feedLog(path)
    .read$({ ...options, follow: false })
    .pipe(filter((record): record is RecordedFrame => record.type === 'frame'));

const searchedBytes = 16 * 1024 * 1024;

interface FoundFeeds {
  readonly feeds: readonly Feed[];
  /** Whether the search found both feeds or reached the end of the log, rather than its limit. */
  readonly isComplete: boolean;
}

const feedsIn = (path: string): Promise<FoundFeeds> => {
  const none: FoundFeeds = { feeds: [], isComplete: true };
  let bytes = 0;
  const found$ = framesOf(path, {}).pipe(
    scan(({ feeds }, { feed, byteLength }) => {
      const isNew = !feeds.includes(feed);
      bytes += byteLength;
      return { feeds: isNew ? [...feeds, feed] : feeds, isComplete: bytes < searchedBytes };
    }, none),
    takeWhile(({ feeds, isComplete }) => isComplete && feeds.length < 2, true),
  );
  return lastValueFrom(found$, { defaultValue: none });
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
): Promise<{ readonly lines$: Observable<string>; readonly description: string }> => {
  const isFile = source !== '-' && (await isRegular(source));
  const lines = `the lines of ${source === '-' ? 'stdin' : source}`;
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
  if (pace === undefined) return { lines$, description: `${lines}, as they arrive` };
  const begin$ = firstClient$.pipe(take(1));
  return {
    lines$: begin$.pipe(switchMap(() => lines$)),
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
    throw localError("Can't read the file of --source", error);
  }
};

/**
 * Yields the lines of a stream, except empty ones. Splits at newlines only: `node:readline` would also split at
 * U+2028, which JSON may contain.
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
