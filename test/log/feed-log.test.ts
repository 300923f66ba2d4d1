import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom, from, lastValueFrom, NEVER, Observable, Subject, take, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { feedLog } from '../../src/log/feed-log.js';
import type { LogRecord } from '../../src/log/records.js';
import { Frame } from '../../src/protocol/frame.js';
import { waitFor } from '../support/wait-for.js';

const frame = (n: number, at = 1_000 + n) => new Frame('market', Buffer.from(`{"n":${n}}`), false, at, 1);
const opened = (at = 1_000) => ({ type: 'opened', at, feed: 'market', connection: 1 }) as const;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'feed-log-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (path: string, events: readonly unknown[], options = {}) =>
  lastValueFrom(from(events).pipe(feedLog(path).append(options)), { defaultValue: undefined });
const readAllOf = (path: string, options = {}): Promise<LogRecord[]> =>
  lastValueFrom(
    feedLog(path)
      .read$({ follow: false, ...options })
      .pipe(toArray()),
  );
const short = (records: readonly LogRecord[]) =>
  records.map((record) => {
    const { offset = '-' } = record as { readonly offset?: number };
    if (record.type === 'frame') return `${offset}:${record.text()}`;
    const { failure, missed = '' } = record as {
      readonly failure?: { readonly code: string };
      readonly missed?: number;
    };
    return [`${offset}:${record.type}`, failure?.code, missed].join(' ').trim();
  });

describe('a log', () => {
  it('returns what was appended, with offsets', async () => {
    await write(folder, [opened(), frame(1), frame(2)]);
    expect(short(await readAllOf(folder))).toEqual(['0:opened', '1:{"n":1}', '2:{"n":2}']);
  });

  it('continues in a new segment, with a gap for the time between', async () => {
    await write(folder, [opened(), frame(1)]);
    await write(folder, [opened(5_000), frame(2, 5_001)]);
    expect(short(await readAllOf(folder))).toEqual([
      '0:opened',
      '1:{"n":1}',
      '2:opened',
      '3:gap log-paused',
      '4:{"n":2}',
    ]);
    expect(readdirSync(folder).sort()).toEqual(['0000000000000000.ndjson', '0000000000000002.ndjson', 'writer.json']);
  });

  it('rotates, and can be read from an offset and from a time', async () => {
    const events = [opened(), ...Array.from({ length: 500 }, (_, n) => frame(n + 1))];
    await write(folder, events, { segmentBytes: 4_000 });
    expect(readdirSync(folder).length).toBeGreaterThan(10);
    const all = await readAllOf(folder);
    expect(all.map((record) => (record as { offset: number }).offset)).toEqual(
      Array.from({ length: 501 }, (_, n) => n),
    );
    expect(short(await readAllOf(folder, { from: { offset: 400 } })).slice(0, 2)).toEqual([
      '-:opened',
      '400:{"n":400}',
    ]);
    expect(short(await readAllOf(folder, { from: { time: 1_450 } })).slice(0, 2)).toEqual([
      '-:opened',
      '450:{"n":450}',
    ]);
  });

  it('can be followed while it grows, and tells the time', async () => {
    const source = new Subject<unknown>();
    const subscription = source.pipe(feedLog(folder).append()).subscribe();
    const received: LogRecord[] = [];
    const reading = feedLog(folder)
      .read$()
      .subscribe((record) => received.push(record));
    source.next(opened());
    for (let n = 0; n < 100; n += 1) {
      source.next(frame(n));
      if (n % 10 === 0) await new Promise((done) => setImmediate(done));
    }
    await firstValueFrom(
      new Observable((subscriber) =>
        feedLog(folder)
          .read$({ from: { offset: 100 } })
          .subscribe(subscriber),
      ),
    );
    while (received.length < 101) await new Promise((done) => setImmediate(done));
    expect(short(received.slice(0, 101))).toEqual([
      '0:opened',
      ...Array.from({ length: 100 }, (_, n) => `${n + 1}:{"n":${n}}`),
    ]);
    reading.unsubscribe();
    subscription.unsubscribe();
  });

  it('refuses a second writer', async () => {
    const first = NEVER.pipe(feedLog(folder).append()).subscribe();
    await expect(write(folder, [])).rejects.toMatchObject({ code: 'log-in-use', path: folder });
    first.unsubscribe();
    await write(folder, [opened()]);
  });

  it('cuts off a torn line, and reports a damaged one', async () => {
    await write(folder, [opened(), frame(1), frame(2), frame(3)]);
    const path = join(folder, '0000000000000000.ndjson');
    truncateSync(path, statSync(path).size - 10);
    await write(folder, [opened(2_000), frame(4, 2_001)]);
    expect(short(await readAllOf(folder))).toEqual([
      '0:opened',
      '1:{"n":1}',
      '2:{"n":2}',
      '3:opened',
      '4:gap log-paused',
      '5:{"n":4}',
    ]);
    writeFileSync(path, readFileSync(path, 'latin1').replace('"offset":1,', '"offset":X,'), 'latin1');
    expect(short(await readAllOf(folder))).toEqual([
      '0:opened',
      '-:gap log-damaged',
      '2:{"n":2}',
      '3:opened',
      '4:gap log-paused',
      '5:{"n":4}',
    ]);
    await expect(readAllOf(folder, { onDamage: 'error' })).rejects.toMatchObject({ code: 'log-corrupt', path });
  });

  it('keeps the newest segments, and tells a reader how many frames are gone', async () => {
    const source = new Subject<unknown>();
    const subscription = source.pipe(feedLog(folder).append({ segmentBytes: 4_000, maxBytes: 12_000 })).subscribe();
    source.next(opened());
    for (let n = 1; n <= 500; n += 1) {
      source.next(frame(n));
      if (n % 20 === 0) await new Promise((done) => setTimeout(done, 2));
    }
    subscription.unsubscribe();
    const all = short(await readAllOf(folder, { from: { offset: 2 } }));
    expect(all[0]).toBe('-:opened');
    expect(all[1]).toMatch(/^-:gap log-behind/);
    expect(all.at(-1)).toBe('500:{"n":500}');
  });

  it('compresses closed segments, which still read the same', async () => {
    const source = new Subject<unknown>();
    const subscription = source.pipe(feedLog(folder).append({ segmentBytes: 4_000, compress: true })).subscribe();
    source.next(opened());
    for (let n = 1; n <= 300; n += 1) source.next(frame(n));
    await waitFor(() => readdirSync(folder).filter((name) => name.endsWith('.gz')).length > 3);
    source.next(frame(301));
    subscription.unsubscribe();
    expect((await readAllOf(folder)).length).toBe(302);
  });
});

describe('a consumer', () => {
  it('continues where it left off', async () => {
    await write(folder, [opened(), ...Array.from({ length: 100 }, (_, n) => frame(n))]);
    const log = feedLog(folder);
    const seen: string[] = [];
    const work = (records: readonly LogRecord[]) => {
      seen.push(...short(records));
      return Promise.resolve();
    };
    await lastValueFrom(log.consume$('db', work, { maxBatch: 10 }).pipe(take(3)));
    expect(await log.committed('db')).toMatchObject({ offset: 30, frames: 29, at: 1_028 });
    await lastValueFrom(log.consume$('db', work, { maxBatch: 10 }).pipe(take(8)));
    expect(seen.filter((each) => !each.endsWith('opened')).length).toBeGreaterThanOrEqual(100);
    expect(await log.committed('db')).toMatchObject({ offset: 101 });
    expect(await log.committed('other')).toBeUndefined();
  });
});
