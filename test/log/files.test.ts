import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { from, lastValueFrom, take, toArray } from 'rxjs';
import { feedLog, inspectLog, type LogRecord, verifyLog } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';

const line = (n: number) =>
  `{"type":"frame","feed":"market","connection":1,"receivedAt":${1_000 + n},"isBinary":false,"encoding":"utf8","data":"${n}"}\n`;
const lines = (...numbers: readonly number[]) => numbers.map(line).join('');
const frame = (n: number) => new Frame('market', Buffer.from(`${n}`), false, 1_000 + n, 1);
const opened = { type: 'opened', at: 1_000, feed: 'market', connection: 1 } as const;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'feed-log-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const path = (name = 'x.ndjson') => join(folder, name);
const read = async (name: string, options = {}) => {
  const records = await lastValueFrom(
    feedLog(path(name))
      .read$({ follow: false, ...options })
      .pipe(toArray()),
  );
  return records.map((record: LogRecord) =>
    record.type === 'frame'
      ? `${record.offset} ${record.text()}`
      : `${'offset' in record ? (record.offset ?? '-') : '-'} ${record.type}`,
  );
};

describe('a file as a log', () => {
  it("uses line numbers as offsets, and skips what it doesn't know", async () => {
    writeFileSync(path(), `{"type":"ticket-requested","at":1}\n${line(1)}\n{"type":"new"}\n${line(2)}{"type":"fr`);
    expect(await read('x.ndjson')).toEqual(['0 ticket-requested', '1 1', '4 2']);
    expect(await read('x.ndjson', { from: { offset: 2 } })).toContain('4 2');
  });

  it('continues in the other files of a recording from version 0.2', async () => {
    writeFileSync(path(), lines(1, 2));
    writeFileSync(path('x.ndjson.1'), lines(3));
    writeFileSync(path('x.ndjson.2'), lines(4));
    expect(await read('x.ndjson')).toEqual(['0 1', '1 2', '2 3', '3 4']);
    expect((await inspectLog(path())).segments.map(({ offset, end }) => [offset, end])).toEqual([
      [0, 2],
      [2, 3],
      [3, 4],
    ]);
  });

  it('can be read compressed', async () => {
    writeFileSync(path('x.ndjson.gz'), gzipSync(lines(1, 2)));
    expect(await read('x.ndjson.gz')).toEqual(['0 1', '1 2']);
    expect(await verifyLog(path('x.ndjson.gz'))).toMatchObject({ records: 2, damaged: [] });
  });

  it('can be followed while it grows', async () => {
    writeFileSync(path(), lines(1));
    const two = lastValueFrom(feedLog(path()).read$().pipe(take(2), toArray()));
    writeFileSync(path(), lines(1, 2));
    expect((await two).map((record) => (record as Frame).text())).toEqual(['1', '2']);
  });

  it('reports a damaged line where it is', async () => {
    writeFileSync(path(), `${line(1)}{"type":"frame"}\n${line(3)}`);
    expect(await read('x.ndjson')).toEqual(['0 1', '- gap', '2 3']);
    await expect(read('x.ndjson', { onDamage: 'error' })).rejects.toMatchObject({
      code: 'log-corrupt',
      path: path(),
      lineAt: line(1).length,
    });
    expect((await verifyLog(path())).damaged).toEqual([
      { path: path(), line: 2, lineAt: line(1).length, problem: 'it is not a record' },
    ]);
  });

  it.each(['text\n', '{"a":1}\n', '\u0000'.repeat(300_000)])('refuses a file in another format', async (text) => {
    writeFileSync(path(), text);
    await expect(read('x.ndjson')).rejects.toMatchObject({ code: 'log-corrupt', path: path() });
  });

  it('is reported if it is missing', async () => {
    await expect(read('missing')).rejects.toMatchObject({ code: 'log-corrupt', path: path('missing') });
    await expect(inspectLog(path('missing'))).rejects.toMatchObject({ code: 'log-corrupt' });
  });

  it('is never written to', async () => {
    writeFileSync(path(), lines(1));
    await expect(lastValueFrom(from([frame(2)]).pipe(feedLog(path()).append()))).rejects.toMatchObject({
      code: 'log-write-failed',
    });
    expect(readFileSync(path(), 'utf8')).toBe(lines(1));
  });
});

describe('a damaged line', () => {
  const market = () => path('market');
  const ofLog = (...damaged: readonly number[]) => {
    const file = join(market(), '0000000000000000.ndjson');
    const all = readFileSync(file, 'utf8').split('\n');
    for (const offset of damaged) all[offset + 1] = 'damaged';
    writeFileSync(file, all.join('\n'));
    return market();
  };
  const ofFile = (...damaged: readonly number[]) => {
    writeFileSync(path(), [0, 1, 2, 3, 4].map((n) => (damaged.includes(n) ? 'damaged\n' : line(n))).join(''));
    return path();
  };
  const shown = async (target: string, options = {}) =>
    (
      await lastValueFrom(
        feedLog(target)
          .read$({ follow: false, ...options })
          .pipe(toArray()),
      )
    ).flatMap((record) => {
      if (record.type === 'frame') return `${record.text()} to ${record.position.offset}`;
      if (record.type !== 'gap') return [];
      // How many frames are before it is not known any more.
      expect([record.failure.code, record.position?.frames]).toEqual(['log-damaged', undefined]);
      return `gap to ${record.position?.offset}`;
    });
  beforeEach(async () => {
    await lastValueFrom(from([0, 1, 2, 3, 4].map(frame)).pipe(feedLog(market()).append()));
  });

  it.each([ofLog, ofFile])('has a gap with the place after it, where a reader goes on: %p', async (damage) => {
    const target = damage(1, 2);
    expect(await shown(target)).toEqual(['0 to 1', 'gap to 3', '3 to 4', '4 to 5']);
    expect(await shown(target, { from: { offset: 3 } })).toEqual(['3 to 4', '4 to 5']);
  });

  it.each([ofLog, ofFile])('has a gap for a reader that begins at it, or before it in time: %p', async (damage) => {
    const target = damage(1, 2);
    for (const place of [{ offset: 1 }, { offset: 2 }, { time: 1_002 }])
      expect(await shown(target, { from: place })).toEqual(['gap to 3', '3 to 4', '4 to 5']);
  });

  it.each([ofLog, ofFile])('has a gap also at the end: %p', async (damage) => {
    expect(await shown(damage(4))).toEqual(['0 to 1', '1 to 2', '2 to 3', '3 to 4', 'gap to 5']);
  });

  it('has a gap also at the beginning', async () => {
    expect(await shown(ofLog(0))).toEqual(['gap to 1', '1 to 2', '2 to 3', '3 to 4', '4 to 5']);
  });
});

describe('inspectLog and verifyLog', () => {
  const log = () => feedLog(path('market'));
  const write = (from_: number, to: number, options = {}) =>
    lastValueFrom(
      from([opened, ...Array.from({ length: to - from_ + 1 }, (_, n) => frame(from_ + n))]).pipe(
        log().append({ segmentBytes: 1_000, ...options }),
      ),
    );

  it('show segments, times, the writer, its retention and consumers', async () => {
    await write(1, 20, { maxAgeMs: 60_000 });
    await lastValueFrom(
      log()
        .consume$('db', () => Promise.resolve(), { maxBatch: 5 })
        .pipe(take(1)),
    );
    const status = await inspectLog(path('market'));
    expect(status).toMatchObject({ offset: 0, end: 21, frames: 20, from: 1_000, to: 1_020 });
    expect(status.writer).toMatchObject({ closed: true, isRunning: false, maxAgeMs: 60_000, offset: 21 });
    expect(status.consumers).toEqual([
      { name: 'db', position: expect.objectContaining({ offset: 5, at: 1_004 }), behind: 16, behindMs: 16 },
    ]);
    expect(status.segments.length).toBeGreaterThan(2);
    const checked = await verifyLog(path('market'));
    expect(checked).toMatchObject({ records: 21, frames: 20, damaged: [], tornBytes: 0 });
    expect(checked.segments).toEqual(status.segments);
  });

  it('say which line of which file is wrong', async () => {
    await write(1, 3, { segmentBytes: 100_000 });
    const file = path('market/0000000000000000.ndjson');
    const text = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, [text[0], text[1], `{"offset":9,${text[2]!.slice(12)}`, 'x', text[4], ''].join('\n'));
    const { damaged } = await verifyLog(path('market'));
    expect(damaged.map(({ line: at, problem }) => `${at}: ${problem}`)).toEqual([
      '3: its offset is 9, not 1',
      '4: it is not a record',
    ]);
  });
});
