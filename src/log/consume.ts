import { join } from 'node:path';
import { noop, Observable } from 'rxjs';
import {
  aBoolean,
  aFunction,
  aName,
  checkRequired,
  invalidOption,
  oneOf,
  positiveCount,
  type Rule,
  validated,
} from '../protocol/validate.js';
import { openCursor, type Cursor } from './cursor.js';
import { closes, onceClosed } from './lock.js';
import { LogError } from './log-error.js';
import type { LogReader } from './reader.js';
import { type From, isFrom, type LogPosition, type LogRecord, type ReaderSettings } from './records.js';
import { readPadded, type Tip, tipPath, type Machine } from './segments.js';

/** The options of {@link FeedLog.consume$}. */
export interface ConsumeOptions {
  /** Where a consumer begins that has no cursor yet. @defaultValue `'earliest'` */
  readonly from?: From | undefined;
  /** The most records of a batch. @defaultValue 500 */
  readonly maxBatch?: number | undefined;
  /** How many batches are worked on at the same time. They begin in order and may finish in any order. @defaultValue 1 */
  readonly maxInFlight?: number | undefined;
  /** `false`: you guarantee that one process uses this name, on a file system without locks. @defaultValue `true` */
  readonly lock?: boolean | undefined;
  /**
   * What happens when the log no longer has the next records, or they are damaged. `'gap'`: `work` receives a gap in
   * their place. `'error'`: the stream errors, and the cursor never passes the hole.
   *
   * @defaultValue `'gap'`
   */
  readonly onLoss?: 'gap' | 'error' | undefined;
}

/** A commit of a consumer. */
export interface Committed {
  /** The next offset: all records before it are done. */
  readonly committed: number;
  /** How many records of the log are after it. */
  readonly behind: number;
  /** How far it is behind the log, in ms of the feed's time. */
  readonly behindMs: number;
}

/** A reader, as far as `read` and a consumer use it. */
export type RecordReader = Pick<LogReader, 'next' | 'position' | 'close'>;

/** What reading and a consumer use of a log: a folder, or a stream of NATS. */
export interface ReadableLog {
  /** The folder, or the name of the stream. */
  readonly path: string;
  readonly now: () => number;
  readonly openReader: (settings: ReaderSettings) => RecordReader;
  readonly openCursor: (name: string, isLocked: boolean) => Cursor | Promise<Cursor>;
  /** Returns the end of the log, if it is known. */
  readonly newest: (reader: RecordReader) => Pick<Tip, 'offset' | 'at'> | undefined;
}

export const readableFolder = (
  folder: string,
  machine: Pick<Machine, 'disk' | 'lockFile' | 'now'>,
  openReader: ReadableLog['openReader'],
): ReadableLog => ({
  ...{ path: folder, now: machine.now, openReader },
  openCursor: (name, isLocked) => openCursor(folder, name, machine, isLocked),
  newest: () => readPadded<Tip>(machine.disk, tipPath(folder)),
});

type Work = (records: readonly LogRecord[]) => Promise<unknown>;

export const consume$ = (
  log: ReadableLog,
  name: string,
  work: Work,
  options: ConsumeOptions,
): Observable<Committed> => {
  if (!aName.is(name)) throw invalidOption('name', aName.allowed);
  checkRequired({ work }, { work: aFunction });
  const settings = { ...defaults, ...validated(options, rules) };
  const key = join(log.path, name);
  return onceClosed(
    key,
    () =>
      new Observable((subscriber) => {
        let run: ConsumerRun | undefined;
        const all = async (): Promise<void> => {
          // The lock of a folder is taken, or refused, in the call of `subscribe`.
          const opening = log.openCursor(name, settings.lock);
          const cursor = opening instanceof Promise ? await opening : opening;
          run = new ConsumerRun(log, cursor, work, settings, (committed) => subscriber.next(committed));
          if (subscriber.closed) run.stop();
          await run.all();
        };
        const ended = all();
        ended.then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
        return () => {
          run?.stop();
          closes(key, ended.catch(noop));
        };
      }),
  );
};

/** One run of a consumer: batches begin in order, and the cursor moves to the end of the finished ones without a hole. */
class ConsumerRun {
  readonly #log: ReadableLog;
  readonly #work: Work;
  readonly #settings: typeof defaults;
  readonly #emit: (committed: Committed) => void;
  readonly #cursor: Cursor;
  readonly #reader: RecordReader;
  /** The batches after the cursor, in order. */
  readonly #batches: { readonly position: LogPosition; isDone: boolean }[] = [];
  readonly #running = new Set<Promise<unknown>>();
  #failure: { readonly error: unknown } | undefined;
  #tip: { readonly tip: ReturnType<ReadableLog['newest']>; readonly readAt: number } = {
    tip: undefined,
    readAt: -Infinity,
  };

  constructor(
    log: ReadableLog,
    cursor: Cursor,
    work: Work,
    settings: typeof defaults,
    emit: (committed: Committed) => void,
  ) {
    this.#log = log;
    this.#work = work;
    this.#settings = settings;
    this.#emit = emit;
    this.#cursor = cursor;
    this.#reader = log.openReader({
      from: cursor.position ?? settings.from,
      follow: true,
      onDamage: settings.onLoss,
    });
  }

  async all(): Promise<void> {
    try {
      while (this.#failure === undefined) {
        const records = await this.#reader.next(this.#settings.maxBatch);
        if (records === undefined) break;
        this.#begin(records);
        while (this.#running.size >= this.#settings.maxInFlight) await Promise.race(this.#running);
      }
    } finally {
      // The lock stays until no work of this run can finish any more.
      await Promise.all(this.#running);
      this.#reader.close();
      this.#cursor.close();
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  stop(): void {
    this.#reader.close();
  }

  #begin(all: readonly LogRecord[]): void {
    const records = all.filter(({ type }) => type !== 'watermark');
    if (records.length === 0) return;
    if (this.#settings.onLoss === 'error') refuseLoss(records, this.#log.path);
    const batch = { position: this.#reader.position as LogPosition, isDone: false };
    this.#batches.push(batch);
    const running: Promise<unknown> = this.#worked(records)
      .then(() => {
        batch.isDone = true;
        return this.#commit();
      })
      .catch((error: unknown) => {
        this.#failure ??= { error };
        this.#reader.close();
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  // A function that throws is a promise that rejects.
  async #worked(records: readonly LogRecord[]): Promise<void> {
    await this.#work(records);
  }

  #commit(): void | Promise<void> {
    let done: LogPosition | undefined;
    while (this.#batches[0]?.isDone === true) done = this.#batches.shift()?.position;
    if (done === undefined) return;
    const committing = this.#cursor.commit(done);
    return committing === undefined ? this.#committed(done) : committing.then(() => this.#committed(done));
  }

  #committed(done: LogPosition): void {
    const tip = this.#newest();
    this.#emit({
      committed: done.offset,
      behind: Math.max(0, (tip?.offset ?? done.offset) - done.offset),
      behindMs: Math.max(0, (tip?.at ?? 0) - (done.at ?? tip?.at ?? 0)),
    });
  }

  #newest(): ReturnType<ReadableLog['newest']> {
    const now = this.#log.now();
    if (now - this.#tip.readAt >= 100 || now < this.#tip.readAt)
      this.#tip = { tip: this.#log.newest(this.#reader), readAt: now };
    return this.#tip.tip;
  }
}

const refuseLoss = (records: readonly LogRecord[], path: string): void => {
  const gap = records.find((record) => record.type === 'gap' && record.offset === undefined);
  if (gap?.type !== 'gap') return;
  const problem = `The log ${path} no longer has the next records: ${gap.missed ?? 'an unknown number of'} frames are gone.`;
  throw new LogError('log-behind', problem, { path });
};

const defaults = {
  from: 'earliest' as From,
  maxBatch: 500,
  maxInFlight: 1,
  lock: true,
  onLoss: 'gap' as 'gap' | 'error',
};

const fromRule: Rule = {
  allowed: "'earliest', 'latest', { offset } or { time }",
  is: isFrom,
};

const rules = {
  from: fromRule,
  maxBatch: positiveCount,
  maxInFlight: positiveCount,
  lock: aBoolean,
  onLoss: oneOf('gap', 'error'),
};
