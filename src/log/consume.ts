import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { noop, Observable } from 'rxjs';
import {
  aFunction,
  aName,
  checkRequired,
  invalidOption,
  oneOf,
  positiveCount,
  validated,
} from '../protocol/validate.js';
import type { Place } from '../protocol/place.js';
import { isTime } from '../protocol/type-guards.js';
import { placeOf } from './lines.js';
import { closes, onceClosed } from './lock.js';
import { consumerInUse, LogError, toLogError } from './log-error.js';
import type { RecordReader } from './record-reader.js';
import { type From, fromRule, type LogEnd, type LogRecord, type ReaderSettings } from './records.js';
import {
  type Disk,
  type InPlace,
  isInPlace,
  type Machine,
  openInPlace,
  readInPlace,
  recordsAfter,
  syncFolder,
} from './segments.js';

/** The options of {@link FeedLog.consume$}. */
export interface ConsumeOptions {
  /** Where a new consumer begins, which has no cursor yet. @defaultValue `'earliest'` */
  readonly from?: From | undefined;
  /** How many records a batch may have. @defaultValue 500 */
  readonly maxBatch?: number | undefined;
  /** How many batches to work on at once. They begin in order, and may finish in any order. @defaultValue 1 */
  readonly maxInFlight?: number | undefined;
  /**
   * What to do when the log no longer has the next records, or they're damaged. With `'gap'`, `work` receives a gap in
   * their place. With `'error'`, the stream errors, and the cursor never moves past the hole.
   *
   * @defaultValue `'gap'`
   */
  readonly onLoss?: 'gap' | 'error' | undefined;
}

/** A commit of a consumer. */
export interface Committed {
  /** The next offset. All records before it are done. */
  readonly committed: number;
  /** How many records are left in the log. */
  readonly behind: number;
  /** How far the consumer lags, in ms of the feed's time. */
  readonly behindMs: number;
}

/** The part of a reader that `read` and consumers need. */
export type OpenedReader = Pick<RecordReader, 'next' | 'position' | 'end' | 'close'>;

/** The part of a log that `read` and consumers need. The log is a folder, or on a server. */
export interface ReadableLog {
  /** The folder, or the name of the stream. */
  readonly path: string;
  /** Leads to the log, unless it's a folder. */
  readonly connection?: object;
  readonly now: () => number;
  readonly openReader: (settings: ReaderSettings) => OpenedReader;
  readonly openCursor: (name: string) => Cursor | Promise<Cursor>;
}

type Work = (records: readonly LogRecord[]) => Promise<unknown>;

export const consume$ = (
  log: ReadableLog,
  name: string,
  work: Work,
  options: ConsumeOptions,
): Observable<Committed> => {
  if (!aName.is(name)) throw invalidOption('name', aName.allowed);
  checkRequired({ work }, { work: aFunction });
  const settings = { ...consumeDefaults, ...validated(options, rules) };
  const key = join(log.path, name);
  return onceClosed(
    key,
    () =>
      new Observable((subscriber) => {
        let reader: OpenedReader | undefined;
        const consume = async (): Promise<void> => {
          // `subscribe` itself takes the lock of a folder, or is refused.
          const opening = log.openCursor(name);
          const cursor = opening instanceof Promise ? await opening : opening;
          try {
            const { from, onLoss } = settings;
            reader = log.openReader({ from: cursor.position ?? from, follow: true, onDamage: onLoss });
            if (subscriber.closed) reader.close();
            await worked(log, reader, cursor, work, settings, (committed) => subscriber.next(committed));
          } finally {
            cursor.close();
          }
        };
        const ended = consume();
        ended.then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
        return () => {
          reader?.close();
          // The subscriber has its error.
          closes(key, ended.catch(noop), log.connection);
        };
      }),
    log.connection,
  );
};

/** Begins batches in order, and commits up to the first one that isn't finished. Resolves when all have ended. */
const worked = async (
  log: ReadableLog,
  reader: OpenedReader,
  cursor: Cursor,
  work: Work,
  { maxBatch, maxInFlight, onLoss }: typeof consumeDefaults,
  emit: (committed: Committed) => void,
): Promise<void> => {
  const progress = progressOf(log, reader);
  /** The batches after the cursor, in order. */
  const batches: { readonly position: Place; isDone: boolean }[] = [];
  const running = new Set<Promise<unknown>>();
  let failure: { readonly error: unknown } | undefined;
  const begin = async (records: readonly LogRecord[]): Promise<void> => {
    const batch = { position: reader.position as Place, isDone: false };
    batches.push(batch);
    try {
      cursor.check?.();
      await work(records);
      batch.isDone = true;
      let done: Place | undefined;
      while (batches[0]?.isDone === true) done = batches.shift()?.position;
      if (done === undefined) return;
      const committing = cursor.commit(done);
      if (committing !== undefined) await committing;
      emit(progress(done));
    } catch (error) {
      failure ??= { error };
      reader.close();
    }
  };
  try {
    for (let all = await reader.next(maxBatch); all !== undefined; all = await reader.next(maxBatch)) {
      const records = all.filter(({ type }) => type !== 'watermark');
      if (records.length === 0) continue;
      if (onLoss === 'error') refuseLoss(records, log.path);
      const batch = begin(records);
      running.add(batch);
      void batch.then(() => running.delete(batch));
      while (running.size >= maxInFlight) await Promise.race(running);
    }
  } finally {
    // Keeps the lock until no work of this run can finish any more.
    await Promise.all(running);
    reader.close();
  }
  if (failure !== undefined) throw failure.error;
};

/** Returns how far a position is from the end of the log, which it reads at most ten times a second. */
const progressOf = (log: ReadableLog, reader: OpenedReader): ((position: Place) => Committed) => {
  let [end, readAt]: [LogEnd | undefined, number] = [undefined, -Infinity];
  return (position) => {
    if (Math.abs(log.now() - readAt) >= 100) [end, readAt] = [reader.end(), log.now()];
    return { committed: position.offset, ...lagOf(position, end) };
  };
};

/** How far a consumer is behind. Without a commit it begins at 0, and a place may have no time. */
export const lagOf = (position: Place | undefined, end: LogEnd | undefined): Omit<Committed, 'committed'> => {
  const { at = 0 } = position ?? {};
  const behind = end === undefined ? 0 : recordsAfter(position ?? { offset: 0 }, end);
  return { behind, behindMs: at === 0 ? 0 : Math.max(0, (end?.at ?? 0) - at) };
};

/** The cursor of a consumer: how far it has got. For a folder it's a file, locked while the consumer runs. */
export interface Cursor {
  readonly position: Place | undefined;
  readonly commit: (position: Place) => void | Promise<void>;
  /** Throws if another process may have the cursor. */
  readonly check?: () => void;
  readonly close: () => void;
}

const cursorPath = (folder: string, name: string): string => join(folder, 'cursors', `${name}.json`);

/** @throws LogError with the code `consumer-in-use`, `log-corrupt` or `log-write-failed` */
export const openCursor = (folder: string, name: string, { disk, lockFile }: Machine): Cursor => {
  const path = cursorPath(folder, name);
  let file: InPlace | undefined;
  try {
    disk.mkdirSync(join(folder, 'cursors'), { recursive: true });
    createCursor(path, disk);
    const { fd, write } = (file = openInPlace(disk, path, constants.O_RDWR));
    if (!lockFile(fd, path)) throw consumerInUse(name, folder, path);
    const check = (): void => {
      if (isInPlace(disk, fd, path)) return;
      const problem = `The cursor ${path} was removed or replaced, so another process may run the consumer ${name}.`;
      throw new LogError('consumer-in-use', problem, { path });
    };
    const commit = (position: Place): void => {
      try {
        check();
        write(position);
      } catch (cause) {
        throw toLogError('write', path, cause);
      }
    };
    return { position: committedIn(folder, name, disk), commit, check, close: () => disk.closeSync(fd) };
  } catch (cause) {
    if (file !== undefined) disk.closeSync(file.fd);
    throw toLogError('write', path, cause);
  }
};

/** What a consumer without a commit has in its cursor. An empty one would look like one that was cut off. */
const noCommit = { isNew: true };

/** Creates a cursor, unless there is one. It has its content from the start, whatever a crash or a power failure does. */
const createCursor = (path: string, disk: Disk): void => {
  if (disk.statSync(path, { throwIfNoEntry: false }) !== undefined) return;
  const temporary = `${path}.${randomUUID()}`;
  const { fd, write } = openInPlace(disk, temporary);
  try {
    write(noCommit);
    disk.fdatasyncSync(fd);
    disk.linkSync(temporary, path);
  } catch (error) {
    // Another process was faster. Otherwise this file system has no links, or the disk is full.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') disk.renameSync(temporary, path);
  } finally {
    disk.closeSync(fd);
    disk.rmSync(temporary, { force: true });
  }
  syncFolder(dirname(path), disk);
};

/** Reads the cursor of a consumer, even while it runs. `undefined` if it has never committed. */
export const committedIn = (folder: string, name: string, disk: Disk): Place | undefined => {
  const path = cursorPath(folder, name);
  return readInPlace(disk, path, (json) => committedPlace(json, 'isNew', path));
};

/**
 * Returns the place in a cursor; `undefined` before the first commit.
 *
 * @param mark - the field that a cursor without a commit has
 * @throws LogError with the code `log-corrupt`, never `earliest`: the consumer would do all its work again
 */
export const committedPlace = (json: unknown, mark: string, path: string, cursor = path): Place | undefined => {
  if (isPlace(json)) return placeOf(json);
  const fields = Object(json) as object;
  if (mark in fields && !('offset' in fields)) return undefined;
  const advice = 'Correct its `offset`, or remove it to begin again.';
  throw new LogError('log-corrupt', `The cursor ${cursor} is damaged.`, { path, advice });
};

/** An operator may write one by hand, with an offset only. */
const isPlace = (json: unknown): json is Place => {
  const { offset, gen = 0, frames, holes, at = 0, complete = at } = Object(json) as Partial<Place>;
  return (
    offset !== undefined &&
    fromRule.is(json) &&
    // JSON has `null` instead of NaN: unknown.
    [gen, frames ?? 0, holes ?? 0].every((count) => Number.isFinite(count) && count >= 0) &&
    [at, complete].every(isTime)
  );
};

const refuseLoss = (records: readonly LogRecord[], path: string): void => {
  const gap = records.find((record) => record.type === 'gap' && record.offset === undefined);
  if (gap?.type !== 'gap') return;
  const problem = `The log ${path} no longer has the next records: ${gap.missed ?? 'an unknown number of'} frames are gone.`;
  throw new LogError('log-behind', problem, { path });
};

export const consumeDefaults = {
  from: 'earliest' as From,
  maxBatch: 500,
  maxInFlight: 1,
  onLoss: 'gap' as 'gap' | 'error',
};

const rules = {
  from: fromRule,
  maxBatch: positiveCount,
  maxInFlight: positiveCount,
  onLoss: oneOf('gap', 'error'),
};
