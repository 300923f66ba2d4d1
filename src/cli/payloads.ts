import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { defer, filter, finalize, firstValueFrom, from, map, type Observable, switchMap, take } from 'rxjs';
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
  rate: option('--rate <N>', 'frames per second of each feed (default: 20)', parsed(decimal, sourceRules.rate)),
  seed: option('--seed <N>', 'the same seed generates the same payloads (default: 1)', parsed(whole, sourceRules.seed)),
  source: option('--source <FILE|->', 'send the lines of a file, or of stdin, one payload per line', anyText),
  feed: option('--feed <market|raw>', 'the feed of --source (default: market)', oneOf('market', 'raw')),
  replay: option(
    '--replay <LOG>',
    'send a log of record: each frame to its feed, with the recorded intervals',
    anyText,
  ),
  speed: option('--speed <N|max>', 'the speed of --replay, as a multiple (default: 1)', speed),
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

const recordedPayloads = async (path: string, times: number, clients: Clients): Promise<Payloads> => {
  const earliest = await firstValueFrom(framesOf(path, { speed: Infinity }), { defaultValue: undefined });
  if (earliest === undefined)
    throw new CliError(ExitCode.failed, `The log of --replay (${path}) contains no frame. Use one that does.`);
  const pace = { 1: 'as recorded', [Infinity]: 'as fast as possible' }[times] ?? `${times} times as fast`;
  const description = `its frames in ${path}, ${pace}, from when the first client connects`;
  const framesOfFeed = (feed: Feed, options: ReadOptions) =>
    framesOf(path, options).pipe(filter((frame) => frame.feed === feed));
  const sourceOf = (feed: Feed): Source => ({
    description,
    payloads$: clients(feed).pipe(
      take(1),
      // Starts at its first frame, so that the replay doesn't sit through the time before it.
      switchMap(() => framesOfFeed(feed, { speed: Infinity }).pipe(take(1))),
      switchMap(({ offset }) => framesOfFeed(feed, { speed: times, from: { offset } })),
      map((frame) => (frame.isBinary ? frame.data : frame.text())),
    ),
  });
  return { market: sourceOf('market'), raw: sourceOf('raw'), feed: earliest.feed };
};

const framesOf = (path: string, options: ReadOptions) =>
  feedLog(path)
    .read$({ ...options, follow: false })
    .pipe(filter((record): record is Extract<LogRecord, Frame> => record.type === 'frame'));

const fileRate = 20;

/** A file, or any source with a rate, starts when the first client connects, so that this client gets the first line. */
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
    const lines = linesOf(stream);
    return from(pace === undefined ? lines : pacedAt(pace, lines)).pipe(finalize(() => stream.destroy()));
  });
  const when = pace === undefined ? 'as they arrive' : `${pace} a second from when the first client connects`;
  const begun$ = firstClient$.pipe(
    take(1),
    switchMap(() => lines$),
  );
  return {
    payloads$: pace === undefined ? lines$ : begun$,
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
 * Yields the lines of a stream, except empty ones. Throws for one of more than 16 MiB before it reads the rest of it.
 * Splits at newlines only: `node:readline` would also split at U+2028, which JSON may contain.
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
      line = start;
    }
    if (starts.length > 0) bytes = Buffer.byteLength(line);
  }
  yield* payloadIn(line + decoder.decode());
}

const payloadIn = (line: string): readonly string[] => [line.replace(/\r$/, '')].filter(Boolean);

const tooLong =
  'a line has more than 16 MiB, the largest frame that a client accepts (`maxFrameBytes`). ' +
  'Each payload ends with a newline: add the missing ones, or make the payloads smaller';

const maxCatchUpMs = 100;

/** Yields at most this many values per second. Doesn't pull a value before it's due, so a fast source waits. */
export async function* pacedAt<T>(rate: number, values: AsyncIterable<T>): AsyncGenerator<T> {
  const stepMs = 1_000 / rate;
  let dueMs = performance.now();
  for await (const value of values) {
    const waitMs = dueMs - performance.now();
    // Timers can't be finer than 1 ms, so at a high rate one turn of the event loop sends several values.
    if (waitMs >= 1) await delay(waitMs, undefined, { ref: false });
    yield value;
    dueMs = Math.max(dueMs, performance.now() - maxCatchUpMs) + stepMs;
  }
}
