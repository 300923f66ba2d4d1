import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { isAbsolute, sep } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import {
  asyncScheduler,
  firstValueFrom,
  map,
  Observable,
  type SchedulerLike,
  ReplaySubject,
  Subject,
  takeUntil,
  timer,
} from 'rxjs';
import { atExit } from './at-exit.js';
import { type Appendable, appended, type Fail, writeDebug } from './append.js';
import { lockFile, onceClosed, prepareLocks, whenClosed } from './lock.js';
import { aBoolean, aScheduler, clampMs, invalidOption, oneOf, type Rule, validated } from '../protocol/validate.js';
import { timeOf } from '../operators/items/item.js';
import type { Place, StoredLine } from '../protocol/place.js';
import { Bell } from './bell.js';
import {
  type Committed,
  committedIn,
  consume$,
  type ConsumeOptions,
  openCursor,
  type OpenedReader,
  type ReadableLog,
} from './consume.js';
import {
  above,
  type AppendOptions,
  appendRules,
  type FeedLogOptions,
  type FolderSettings,
  folderSettings,
} from './options.js';
import { type History, historyOfFolder, storedIn } from './history.js';
import { LogReader } from './reader.js';
import { type From, fromRule, type LogRecord, type ReaderSettings } from './records.js';
import { isFile, type Machine } from './segments.js';
import { LogWriter } from './writer.js';

/** The options of {@link FeedLog.read$}. */
export interface ReadOptions {
  /** Where to begin. @defaultValue `'earliest'` */
  readonly from?: From | undefined;
  /** Whether to wait for new records at the end of the log. @defaultValue `true` */
  readonly follow?: boolean | undefined;
  /** How fast to emit: 1 as records happened, 10 ten times as fast, `Infinity` at once. @defaultValue `Infinity` */
  readonly speed?: number | undefined;
  /** What you get for damaged lines: a `gap`, or a LogError with the code `log-corrupt`. @defaultValue `'gap'` */
  readonly onDamage?: 'gap' | 'error' | undefined;
  /** The clock that `speed` goes by. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** A log of a feed: {@link feedLog}. */
export interface FeedLog extends StoredLine {
  /**
   * Writes the frames and events of a feed to the log, and passes everything on unchanged. For a `Decoded`, it writes
   * the frame. It ignores other values.
   *
   * Subscribes to the feed once it's certain that nobody else writes the log. Errors with a {@link LogError} if another
   * writer has it (`log-in-use`) or takes it over (`log-fenced`), or if the disk or the server refuses records
   * (`log-write-failed`).
   */
  append(options?: AppendOptions): <E>(source: Observable<E>) => Observable<E>;
  /** Emits the records from `from` on, then new ones as they come. Completes at the end if `follow` is `false`. */
  read$(options?: ReadOptions): Observable<LogRecord>;
  /** Returns the same records in batches. If your loop is slow, it reads slowly, and nothing piles up in memory. */
  read(options?: ReadOptions): AsyncIterable<readonly LogRecord[]>;
  /**
   * Calls `work` with the records in batches, starting where this consumer left off, and emits each commit. The cursor
   * moves past a batch only when all before it are done.
   *
   * Errors with what `work` throws. The cursor stays where it is, so `retry()` tries that batch again.
   *
   * @param name - the name of the consumer, which only one process at a time can use
   */
  consume$(
    name: string,
    work: (records: readonly LogRecord[]) => Promise<unknown>,
    options?: ConsumeOptions,
  ): Observable<Committed>;
  /** Resolves with how far a consumer has got, or with `undefined` before its first commit. */
  committed(name: string): Promise<Place | undefined>;
  /**
   * Completes the streams of `append`, and resolves once their last records are stored, or `onError` has got the failure.
   * Await it before you close the connection of a log on a server. Readers go on.
   */
  close(): Promise<void>;
}

/**
 * Opens a log: a folder that keeps a feed, so that you can read it again from any point, even while it grows.
 *
 * @param target - the folder, which the first `append` creates
 * @param options - see {@link FeedLogOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 */
export const feedLog = (target: string, options: FeedLogOptions = {}): FeedLog => {
  if (typeof target !== 'string' || target === '') throw invalidOption('path', 'a path: a text that is not empty');
  const folder = absolutePath(target);
  const settings = folderSettings(options);
  const log = logOf({
    path: folder,
    now: machine.now,
    openReader: (reading) => openReader(folder, reading),
    openWriter: (fail) => openWriter(folder, settings, fail),
    openCursor: (name) => openCursor(folder, name, machine),
    ...historyOfFolder(fs, folder),
    committed: async (name) => Promise.resolve(committedIn(folder, name, fs)),
  });
  const append: FeedLog['append'] = (own) => {
    // The owner of a cluster opens its log between two frames.
    prepareLocks();
    return log.append(own);
  };
  return { ...log, append };
};

/** What a log does in a folder, or on a server. */
type LogParts = ReadableLog & History & Pick<Appendable, 'openWriter'> & Pick<FeedLog, 'committed'>;

/** What all logs have in common. */
export const logOf = (log: LogParts): FeedLog => {
  const { path, connection, committed } = log;
  const closing$ = new Subject<void>();
  const read = (options: ReadOptions = {}): AsyncIterable<readonly LogRecord[]> => {
    const settings = { ...readDefaults, ...validated(options, readRules) };
    return { [Symbol.asyncIterator]: () => paced(() => log.openReader(settings), settings) };
  };
  return {
    append: (options = {}) => {
      const { onError = 'error' } = validated(options, appendRules);
      return (source) => onceClosed(path, () => appended(source, { ...log, onError, closing$ }), connection);
    },
    read,
    read$: (options = {}) => pushed(read(options)),
    consume$: (name, work, options = {}) => consume$(log, name, work, options),
    stored: storedIn(log),
    committed,
    close: () => {
      closing$.next();
      return whenClosed(path, connection);
    },
  };
};

const machine: Machine = {
  disk: fs,
  lockFile,
  now: () => Date.now(),
  monotonic: () => performance.now(),
  newId: () => randomBytes(6).toString('hex'),
  every: (ms, call) => {
    const handle = setInterval(call, ms).unref();
    return () => clearInterval(handle);
  },
  soon: queueMicrotask,
  atExit,
  warn: (text) => process.emitWarning(text, { type: 'TradeFeedWarning', code: 'log-write-failed' }),
  gzip: (bytes, done) => gzip(bytes, { level: 1 }, done),
};

// `path.resolve` would shorten `link/..`, which is another folder when `link` is a symbolic link.
const absolutePath = (path: string): string => (isAbsolute(path) ? path : `${process.cwd()}${sep}${path}`);

const openReader = (path: string, settings: ReaderSettings): LogReader => {
  const bell = new Bell(path);
  const reading = { disk: fs, now: () => Date.now(), bell, gunzip: promisify(gunzip), turn: setImmediate };
  // A relay reads many places at once, and none may hold the event loop.
  const bufferBytes = (settings.isRaw === true ? 64 : 256) * 1024;
  return new LogReader(path, settings, { ...reading, bufferBytes }, isFile(path));
};

const openWriter = (folder: string, settings: FolderSettings, fail: Fail): LogWriter => {
  try {
    return new LogWriter(folder, settings, machine, fail);
  } catch (error) {
    writeDebug(error as Error);
    throw error;
  }
};

/** Returns the batches of a reader, each when it's due. The first `next` opens it: nobody has to end an unused loop. */
const paced = (
  open: () => OpenedReader,
  { speed, scheduler }: Pick<typeof readDefaults, 'speed' | 'scheduler'>,
): AsyncIterator<readonly LogRecord[]> => {
  const closed = new ReplaySubject<void>(1);
  const dueMs = schedule(speed);
  let reader: OpenedReader | undefined;
  const batches = (async function* (): AsyncGenerator<readonly LogRecord[], void, void> {
    reader = open();
    let startedAt: number | undefined;
    try {
      for (let records = await reader.next(); records !== undefined; records = await reader.next()) {
        if (speed === Infinity) {
          yield records;
          continue;
        }
        startedAt ??= scheduler.now();
        const due = records.map((record) => dueMs(timeOf(record) as number));
        for (let from = 0; from < records.length;) {
          const now = scheduler.now() - startedAt;
          let to = from;
          while ((due[to] ?? Infinity) <= now) to += 1;
          if (to > from) yield records.slice(from, to);
          else if (!(await waited((due[from] as number) - now, scheduler, closed))) return;
          from = to;
        }
      }
    } finally {
      reader.close();
    }
  })();
  // `return` of a generator would wait for its `next`.
  const end = (): Promise<IteratorResult<readonly LogRecord[]>> => {
    reader?.close();
    closed.next();
    return batches.return();
  };
  return { next: () => batches.next(), return: end };
};

/** Resolves with `false` if the reader is closed in the meantime. */
const waited = (ms: number, scheduler: SchedulerLike, closed: Observable<void>): Promise<boolean> =>
  firstValueFrom(
    timer(clampMs(ms), scheduler).pipe(
      map(() => true),
      takeUntil(closed),
    ),
    { defaultValue: false },
  );

/** Returns when a time of the log is due, in ms after the first one. A clock that was set back adds no delay. */
const schedule = (speed: number): ((time: number) => number) => {
  let [last, logMs] = [Infinity, 0];
  return (time) => {
    logMs += Math.max(0, time - last);
    last = time;
    return logMs / speed;
  };
};

const pushed = <T>(batches: AsyncIterable<readonly T[]>): Observable<T> =>
  new Observable((subscriber) => {
    const iterator = batches[Symbol.asyncIterator]();
    const pull = async (): Promise<void> => {
      for await (const records of { [Symbol.asyncIterator]: () => iterator })
        for (const record of records) subscriber.next(record);
    };
    pull().then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
    return () => void iterator.return?.();
  });

const readDefaults = {
  from: 'earliest' as From,
  follow: true,
  speed: Infinity,
  onDamage: 'gap' as 'gap' | 'error',
  scheduler: asyncScheduler as SchedulerLike,
};

const readRules: Readonly<Record<keyof ReadOptions, Rule>> = {
  from: fromRule,
  follow: aBoolean,
  speed: above('a number'),
  onDamage: oneOf('gap', 'error'),
  scheduler: aScheduler,
};
