import { describe, expect, it } from '@jest/globals';
import * as fs from 'node:fs';
import { feedLog, type FeedLog, type LogRecord } from '../../src/log/index.js';
import { relayReports } from '../../src/protocol/failures/meanings.js';
import { gapOfMissed } from '../../src/protocol/feed-state.js';
import type { Place, StoredOptions, StoredRecords } from '../../src/protocol/place.js';
import { memoryLog } from './memory-log.js';
import { all, append, compress, frame, frames, opened, path, segments } from './support.js';

const everything = { maxBytes: Infinity };
type Wanted = Partial<StoredOptions>;

const readAfter = async (log: FeedLog, after: Place, options: Wanted = {}): Promise<StoredRecords[]> => {
  const { signal } = new AbortController();
  const parts: StoredRecords[] = [];
  for await (const part of log.stored(after, { ...everything, signal, ...options })) parts.push(part);
  return parts;
};

/** What a page gets: the numbers of frames, and the types of events with what a gap counts. */
const seen = (records: readonly StoredRecords[]): readonly unknown[] =>
  records.flatMap(({ parts }) =>
    parts.flatMap((part): readonly unknown[] => {
      if (!(part instanceof Uint8Array)) return [part.type === 'gap' ? `gap ${part.missed ?? '?'}` : part.type];
      const lines = Buffer.from(part).toString().trimEnd().split('\n');
      return lines.map((line) => {
        const { type, data, ...rest } = JSON.parse(line.replace(/^data: /, '')) as Record<string, string>;
        expect({ type, ...rest }).toEqual(expect.not.objectContaining({ offset: expect.anything() }));
        return (JSON.parse(data!) as { n: number }).n;
      });
    }),
  );

const placeAfter = (records: readonly LogRecord[], n: number): Place =>
  records.flatMap((record) => (record.type === 'frame' && record.text() === `{"n":${n}}` ? [record.position] : []))[0]!;
const sizeOf = (records: readonly StoredRecords[]): number =>
  records.flatMap(({ parts }) => parts).reduce((sum, part) => sum + (part instanceof Uint8Array ? part.length : 0), 0);
const isStatus = (part: unknown): boolean => part === 'opened';
const numbers = (begin: number, end: number) => Array.from({ length: end - begin }, (_, n) => begin + n);
const gap = (missed?: number) => gapOfMissed({ from: 1_100, to: 1_101, frames: missed }, relayReports.behind);

describe.each([
  ['a folder', () => feedLog(path(), { segmentBytes: 4_000 })],
  ['a store', () => memoryLog()()],
])('the history of %s', (_, open) => {
  it('has what follows a place, with the status unless that is known', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 101)]);
    const after = placeAfter(await all(log), 40);
    const parts = await readAfter(log, { ...after, holes: NaN });
    expect(seen(parts)).toEqual(['opened', ...numbers(41, 101)]);
    expect(parts.reduce((sum, part) => sum + part.frames, 0)).toBe(60);
    expect(parts.at(-1)!.end).toEqual(placeAfter(await all(log), 100));
    expect(seen(await readAfter(log, after, { isNext: true }))).toEqual(numbers(41, 101));
    expect(seen(await readAfter(log, parts.at(-1)!.end, { isNext: true }))).toEqual([]);
  });

  it('has a gap with the exact number in place of what exceeds the bytes, then the newest', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 101), gap(7), ...frames(201, 301)]);
    const after = placeAfter(await all(log), 10);
    const [status, first, ...rest] = seen(await readAfter(log, after, { maxBytes: 5_000, isNext: true }));
    const [begin] = rest as [number];
    expect([status, first]).toEqual(['opened', `gap ${90 + 7 + begin - 201}`]);
    expect(rest).toEqual(numbers(begin, 301));
    expect(begin).toBeGreaterThan(201);
  });

  it('has a gap without a number if one without a number is in the part that is left out', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 101), gap(), ...frames(201, 301)]);
    const after = placeAfter(await all(log), 10);
    expect(seen(await readAfter(log, after, { maxBytes: 5_000 })).slice(0, 2)).toEqual(['opened', 'gap ?']);
  });

  it('has a gap without a number for a place of a generation that it no longer has', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 201)]);
    const after = placeAfter(await all(log), 10);
    const unknown = { ...after, gen: after.gen + 1 };
    expect(seen(await readAfter(log, unknown, { maxBytes: 3_000 })).slice(0, 2)).toEqual(['opened', 'gap ?']);
  });

  it('counts each frame once, wherever it is cut, and has the newest record at least', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 6), gap(3), ...frames(6, 11), gap(), ...frames(11, 16)]);
    const after = placeAfter(await all(log), 2);
    const begins = new Set<unknown>();
    for (let maxBytes = 1; maxBytes < 2_500; maxBytes += 10) {
      const parts = seen(await readAfter(log, after, { maxBytes, isNext: true })).map(String);
      const begin = parts.findIndex((part) => !Number.isNaN(Number(part)));
      // The cut is after the gap without a number.
      const isUnknown = parts.slice(0, begin).find((part) => part.startsWith('gap')) === 'gap ?';
      const counts = parts.map((part) => (part.startsWith('gap') ? Number(part.slice(4)) || 0 : 1));
      if (!isUnknown)
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(13 + 3 + parts.filter(isStatus).length);
      begins.add(parts[begin]);
    }
    expect(begins.size).toBeGreaterThan(5);
  });

  it('goes on over generations, and knows one that has no record yet', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 11)]);
    const after = placeAfter(await all(log), 5);
    await append(log, [opened(2_000), frame(11, 2_001)]);
    const parts = await readAfter(log, after, { isNext: true });
    expect(seen(parts)).toEqual([...numbers(6, 11), 'opened', 'gap ?', 11]);
    expect(parts.at(-1)!.end.gen).toBeGreaterThan(after.gen);
  });

  it('has nothing for a place in another line, or for a page that has left', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 11)]);
    const after = placeAfter(await all(log), 5);
    expect(await readAfter(log, { ...after, line: 'other' })).toEqual([]);
    expect(await readAfter(log, after, { signal: AbortSignal.abort() })).toEqual([]);
    const leaving = new AbortController();
    const parts = log.stored(after, { ...everything, signal: leaving.signal })[Symbol.asyncIterator]();
    const first = parts.next();
    leaving.abort();
    expect(await first).toEqual({ done: true, value: undefined });
  });

  it('has nothing if there is no log', async () => {
    const place = { line: 'a', gen: 1, offset: 4, frames: 4, holes: 0, at: 0, complete: 0 };
    expect(await readAfter(open(), place)).toEqual([]);
    expect(await readAfter(open(), place, { maxBytes: 1 })).toEqual([]);
  });

  it('sends what is larger than a part in several', async () => {
    const log = open();
    await append(log, [opened(), ...frames(1, 5_001)]);
    const parts = await readAfter(log, placeAfter(await all(log), 1), { isNext: true });
    expect(parts.length).toBeGreaterThan(2);
    expect(seen(parts)).toEqual(numbers(2, 5_001));
  });
});

describe('the history of a folder', () => {
  const written = async () => {
    const log = feedLog(path(), { segmentBytes: 4_000 });
    await append(log, [opened(), ...frames(1, 201)]);
    return { log, after: placeAfter(await all(log), 10) };
  };

  it('begins a cut at the next segment if it would be in a compressed one', async () => {
    const { log, after } = await written();
    const files = segments();
    expect(files.length).toBeGreaterThan(3);
    const newest = files.slice(-2).reduce((sum, file) => sum + fs.statSync(file).size, 0);
    for (const file of files.slice(0, -2)) compress(file);
    const [, , ...rest] = seen(await readAfter(log, after, { maxBytes: newest + 500 }));
    expect(rest).toEqual(numbers(201 - rest.length, 201));
    expect(rest.length).toBeLessThan(100);
  });

  it('has all if the limit is larger than the lines of its compressed segments', async () => {
    const { log, after } = await written();
    const size = segments().reduce((sum, file) => sum + fs.statSync(file).size, 0);
    for (const file of segments().slice(0, -1)) compress(file);
    expect(seen(await readAfter(log, after, { maxBytes: size, isNext: true }))).toEqual(numbers(11, 201));
    // A file that ends before its size is written there.
    fs.writeFileSync(`${path()}/0000000000000001.ndjson.gz`, '1');
    expect(seen(await readAfter(log, after, { maxBytes: size, isNext: true })).slice(-1)).toEqual([200]);
  });

  it('keeps to the limit for a page that has more than the log, which has lost records since', async () => {
    const log = feedLog(path(), { segmentBytes: 4_000 });
    await append(log, [opened(), ...frames(1, 401)]);
    const after = placeAfter(await all(log), 350);
    for (const file of segments().slice(3)) fs.rmSync(file);
    const [{ offset: kept }] = [(await all(log)).findLast(({ type }) => type === 'frame') as { offset: number }];
    await append(log, [opened(2_000), ...frames(1_001, 1_201)]);
    expect(kept + 200).toBeLessThan(after.offset);
    const parts = await readAfter(log, after, { maxBytes: 5_000 });
    expect(seen(parts).at(-1)).toBe(1_200);
    expect(sizeOf(parts)).toBeLessThan(6_000);
    expect(seen(parts).filter((part) => String(part).startsWith('gap'))).toEqual(['gap ?']);
  });

  it('begins with the next segment if the end of one has no complete line', async () => {
    const { log, after } = await written();
    const [newest, ...older] = segments().toReversed();
    fs.appendFileSync(older[0]!, 'torn'.repeat(50));
    const maxBytes = fs.statSync(newest!).size + 100;
    const numbersSeen = seen(await readAfter(log, after, { maxBytes })).filter((part) => typeof part === 'number');
    expect(numbersSeen.at(-1)).toBe(200);
  });
});
