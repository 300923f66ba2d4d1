import { afterEach, beforeEach } from '@jest/globals';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { from, lastValueFrom, type Observable, ReplaySubject, toArray } from 'rxjs';
import type { AppendOptions, FeedLog, FeedLogOptions, LogError, LogRecord, ReadOptions } from '../../src/log/index.js';
import { feedLog } from '../../src/log/index.js';
import { LogReader } from '../../src/log/reader.js';
import type { ReaderSettings } from '../../src/log/records.js';
import { Frame } from '../../src/protocol/frame.js';

let folder: string;
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), 'feed-log-'));
});
afterEach(() => fs.rmSync(folder, { recursive: true }));

/** Returns a path in a folder that each test has for itself. */
export const path = (name = 'market'): string => join(folder, name);
/** The paths of the segments of the log `market`. */
export const segments = (): readonly string[] =>
  fs
    .readdirSync(path())
    .filter((name) => name.includes('.ndjson'))
    .sort()
    .map((name) => join(path(), name));

/** Makes a file shorter. */
export const cut = (file: string, share: number): void =>
  fs.truncateSync(file, Math.floor(fs.statSync(file).size * share));

/** A frame whose payload has its number, at 1 000 ms plus its number. */
export const frame = (n: number, at = 1_000 + n): Frame => new Frame('market', Buffer.from(`{"n":${n}}`), false, at, 1);
export const frames = (begin: number, end: number): readonly Frame[] =>
  Array.from({ length: end - begin }, (_, n) => frame(begin + n));
export const opened = (at = 1_000) => ({ type: 'opened', at, feed: 'market', connection: 1 }) as const;
export const done = (): Promise<void> => Promise.resolve();

export const append = (log: FeedLog, events: readonly unknown[], options?: AppendOptions): Promise<unknown> =>
  lastValueFrom(from(events).pipe(log.append(options), toArray()));
export const all = (log: FeedLog, options: ReadOptions = {}): Promise<LogRecord[]> =>
  lastValueFrom(log.read$({ follow: false, ...options }).pipe(toArray()));
export const write = (events: readonly unknown[], options?: FeedLogOptions, to = path()): Promise<unknown> =>
  append(feedLog(to, options), events);
export const read = (options: ReadOptions = {}, of = path()): Promise<LogRecord[]> => all(feedLog(of), options);

/** A reader that follows a log. */
export const follow = (log: FeedLog, options: ReadOptions = {}) => {
  const records: LogRecord[] = [];
  const errors: unknown[] = [];
  const subscription = log.read$(options).subscribe({
    next: (record) => records.push(record),
    error: (error) => errors.push(error),
  });
  return { records, errors, stop: () => subscription.unsubscribe() };
};

/** A reader that nothing wakes, on any disk or machine. */
export const readerOf = (machine: object = {}, settings: Partial<ReaderSettings> = {}, target = path()): LogReader => {
  const bell = { listen: () => undefined, heard: done, close: () => undefined };
  const gunzip = (bytes: Buffer) => Promise.resolve(gunzipSync(bytes));
  const all = { disk: fs, now: Date.now, bell, gunzip, turn: done, bufferBytes: 1_000, ...machine };
  const isFile = target.endsWith('.ndjson');
  return new LogReader(target, { from: 'earliest', follow: true, onDamage: 'gap', ...settings }, all as never, isFile);
};

export const compress = (segment: string): void => {
  fs.writeFileSync(`${segment}.gz`, gzipSync(fs.readFileSync(segment)));
  fs.rmSync(segment);
};

/** Puts a copy in the place of a file. */
export const replace = (file: string): void => {
  fs.copyFileSync(file, path('copy'));
  fs.renameSync(path('copy'), file);
};

/** The fields of the file by which a log has one writer. */
export const tip = () =>
  JSON.parse(fs.readFileSync(path('market/writer.json'), 'utf8')) as { offset: number; line: string };

type AppendsWith<Options> = { append(options?: Options): <E>(source: Observable<E>) => Observable<E> };
/** A writer whose source stays open. */
export const startWriter = <Options>(log: AppendsWith<Options>, options?: Options) => {
  // The log subscribes to its source once nobody else writes it.
  const source = new ReplaySubject<unknown>();
  const errors: LogError[] = [];
  const ended = new Promise<void>((resolve) => {
    source.pipe(log.append(options)).subscribe({
      error: (error: LogError) => {
        errors.push(error);
        resolve();
      },
      complete: resolve,
    });
  });
  const send = (...events: readonly unknown[]) => events.forEach((event) => source.next(event));
  const end = async () => {
    source.complete();
    await ended;
  };
  return { send, errors, end };
};

export const offsetsOf = (records: readonly LogRecord[]): readonly number[] =>
  records.flatMap((record) => ('offset' in record ? (record.offset ?? []) : []));
/** The same with their generations: after a loss, another one has the same offsets. */
export const placesOf = (records: readonly LogRecord[]): readonly string[] =>
  records.flatMap((record) =>
    record.type === 'watermark' || record.offset === undefined ? [] : `${record.position.gen}/${record.offset}`,
  );
export const gapsOf = (records: readonly LogRecord[]) =>
  records.flatMap((record) => (record.type === 'gap' ? [record] : []));
export const textsOf = (records: readonly unknown[]): readonly string[] =>
  (records as readonly LogRecord[]).flatMap((record) => (record.type === 'frame' ? [record.text()] : []));
export const texts = (begin: number, end: number): readonly string[] => textsOf(frames(begin, end));

/** What records are: `1:{"n":1}`, `2:gap log-paused`, `-:gap log-behind 7`. */
export const short = (records: readonly LogRecord[]): readonly string[] =>
  records
    .filter(({ type }) => type !== 'watermark')
    .map((record) => {
      const { offset = '-' } = record as { readonly offset?: number };
      if (record.type === 'frame') return `${offset}:${record.text()}`;
      const { failure, missed = '' } = record as {
        readonly failure?: { readonly code: string };
        readonly missed?: number;
      };
      return [`${offset}:${record.type}`, failure?.code, missed].join(' ').trim();
    });
