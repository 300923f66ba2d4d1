import { afterEach, beforeEach } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { from, lastValueFrom, toArray } from 'rxjs';
import type { AppendOptions, LogRecord, ReadOptions } from '../../src/log/index.js';
import { feedLog } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'feed-log-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Returns a path in a folder that each test has for itself. */
export const path = (name = 'market'): string => join(folder, name);

/** Frames whose payloads have their number, 10 ms apart from 1 000 ms on. */
export const frame = (n: number, at = 1_000 + n * 10): Frame =>
  new Frame('market', Buffer.from(`{"n":${n}}`), false, at, 1);
export const frames = (begin: number, end: number): readonly Frame[] =>
  Array.from({ length: end - begin }, (_, n) => frame(begin + n));
export const opened = (at = 1_000) => ({ type: 'opened', at, feed: 'market', connection: 1 }) as const;

export const write = (events: readonly unknown[], options: AppendOptions = {}, to = path()): Promise<unknown> =>
  lastValueFrom(from(events).pipe(feedLog(to).append(options)), { defaultValue: undefined });
export const read = (options: ReadOptions = {}, of = path()): Promise<LogRecord[]> =>
  lastValueFrom(
    feedLog(of)
      .read$({ follow: false, ...options })
      .pipe(toArray()),
  );

export const texts = (records: readonly LogRecord[]): readonly string[] =>
  records.flatMap((record) => (record.type === 'frame' ? [record.text()] : []));
export const numbersOf = (records: readonly unknown[]): readonly number[] =>
  texts(records as readonly LogRecord[]).map((text) => (JSON.parse(text) as { readonly n: number }).n);

/** What records are: `1:{"n":1}`, `2:gap log-paused`, `-:gap log-behind 7`. */
export const short = (records: readonly LogRecord[]): readonly string[] =>
  records.map((record) => {
    const { offset = '-' } = record as { readonly offset?: number };
    if (record.type === 'frame') return `${offset}:${record.text()}`;
    const { failure, missed = '' } = record as {
      readonly failure?: { readonly code: string };
      readonly missed?: number;
    };
    return [`${offset}:${record.type}`, failure?.code, missed].join(' ').trim();
  });
