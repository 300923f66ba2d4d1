import { describe, expect, it } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { firstValueFrom, skipWhile, Subject } from 'rxjs';
import { feedLog, inspectLog, LogError, verifyLog } from '../../src/log/index.js';
import { toLogError } from '../../src/log/log-error.js';
import { frameIn, isOther, Lines, readHeader, readRecord, scan } from '../../src/log/lines.js';
import { gapOf, opened } from '../operators/stream.js';
import { Frame } from '../../src/protocol/frame.js';
import { path as pathOf, write } from './support.js';

const frame = (n: number) => new Frame('market', Buffer.from(`{"n":${n}}`), false, 1_000 + n, 1);

const segments = () =>
  readdirSync(pathOf())
    .filter((name) => name.includes('.ndjson'))
    .sort()
    .map((name) => join(pathOf(), name));

describe('inspectLog', () => {
  it('shows an empty folder as a log without records', async () => {
    mkdirSync(pathOf());
    expect(await inspectLog(pathOf())).toMatchObject({
      ...{ log: undefined, segments: [], offset: 0, end: 0, frames: 0, bytes: 0, from: undefined, to: undefined },
      ...{ writer: undefined, consumers: [] },
    });
    mkdirSync(join(pathOf(), 'cursors'));
    expect((await inspectLog(pathOf())).consumers).toEqual([]);
  });

  it.each([inspectLog, verifyLog])('rejects with a LogError if there is no such folder: %p', async (read) => {
    const path = join(pathOf(), 'missing');
    await expect(read(path)).rejects.toThrow(LogError);
    await expect(read(path)).rejects.toMatchObject({ path });
  });

  it('shows segments, the writer, and how far each consumer is behind', async () => {
    await write([opened(1_000), ...Array.from({ length: 200 }, (_, n) => frame(n))], {
      segmentBytes: 4_000,
      maxAgeMs: 1e9,
    });
    const consume = (name: string, until: number) =>
      firstValueFrom(
        feedLog(pathOf())
          .consume$(name, () => Promise.resolve(), { maxBatch: 10, from: 'earliest' })
          .pipe(skipWhile(({ committed }) => committed < until)),
      );
    await consume('done', 201);
    const { committed } = await consume('half', 100);
    const status = await inspectLog(pathOf());
    expect(status).toMatchObject({ offset: 0, end: 201, frames: 200, from: 1_000, to: 1_199 });
    expect(status.segments.length).toBeGreaterThan(3);
    expect((await verifyLog(pathOf())).segments).toEqual(status.segments);
    expect(status.segments.map(({ end }) => end).slice(0, -1)).toEqual(status.segments.map((s) => s.offset).slice(1));
    expect(status.writer).toMatchObject({ closed: true, isRunning: false, offset: 201, maxAgeMs: 1e9 });
    expect(status.consumers).toMatchObject([
      { name: 'done', behind: 0, behindMs: 0 },
      { name: 'half', behind: 201 - committed },
    ]);
  });

  it('reads a last segment that is compressed, and one whose header is damaged', async () => {
    await write([opened(1_000), frame(1)]);
    const [path] = segments();
    const bytes = readFileSync(path!);
    writeFileSync(`${path}.gz`, gzipSync(bytes));
    rmSync(path!);
    expect(await inspectLog(pathOf())).toMatchObject({ end: 2, frames: 1, segments: [{ isCompressed: true }] });
    rmSync(`${path}.gz`);
    writeFileSync(path!, bytes.toString().replace('"type":"segment"', '"type":"sediment"'));
    expect(await inspectLog(pathOf())).toMatchObject({ frames: 0, segments: [{ offset: 0, from: 1_000, to: 1_001 }] });
  });
});

it('inspectLog shows a writer that is running', async () => {
  const source = new Subject<unknown>();
  const subscription = source.pipe(feedLog(pathOf()).append()).subscribe();
  source.next(opened(1_000));
  expect((await inspectLog(pathOf())).writer).toMatchObject({ closed: false, isRunning: true });
  subscription.unsubscribe();
});

describe('feedLog', () => {
  it.each([undefined, '', 5])('refuses %p as a path, before any I/O', (path) => {
    expect(() => feedLog(path as string)).toThrow('`path`');
  });

  it.each(['', '../other', 5])('refuses %p as the name of a consumer', (name) => {
    expect(() => feedLog(pathOf()).consume$(name as string, () => Promise.resolve())).toThrow('`name`');
  });

  it('reads from the earliest record, and goes on, by default', async () => {
    await write([opened(1_000), frame(1)]);
    const reader = feedLog(pathOf()).read()[Symbol.asyncIterator]();
    const { value } = (await reader.next()) as { value: readonly { offset?: number }[] };
    expect(value.map(({ offset }) => offset).slice(0, 2)).toEqual([0, 1]);
    expect(await reader.return?.()).toMatchObject({ done: true });
  });

  it('uses the compressed copy if a compression was killed before it removed the plain one', async () => {
    await write([opened(1_000), ...Array.from({ length: 50 }, (_, n) => frame(n))], { segmentBytes: 2_000 });
    const [path] = segments();
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path!)));
    const [first] = (await inspectLog(pathOf())).segments;
    expect(first).toMatchObject({ offset: 0, isCompressed: true });
    await write([opened(2_000), frame(99)], { compress: true });
    expect(segments()).not.toContain(path);
    expect(await verifyLog(pathOf())).toMatchObject({ frames: 51, damaged: [] });
  });

  it('removes what a compression that was killed has left', async () => {
    await write([opened(1_000), frame(1)]);
    writeFileSync(join(pathOf(), '0000000000000000.ndjson.gz.tmp'), 'half');
    await write([opened(2_000), frame(2)], { compress: true });
    expect(readdirSync(pathOf()).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    expect(await inspectLog(pathOf())).toMatchObject({ frames: 2, end: 5 });
  });
});

describe('verifyLog', () => {
  it('names each line that is damaged, counts the bytes of a torn one, and reports its progress', async () => {
    await write([opened(1_000), frame(1), gapOf(1_001, 1_002), { ...gapOf(1_002, 1_003), missed: 7 }, frame(4)]);
    const [path] = segments();
    const progress: number[] = [];
    const whole = await verifyLog(pathOf(), ({ records }) => progress.push(records));
    expect(whole).toMatchObject({ records: 5, frames: 9, damaged: [], tornBytes: 0 });
    expect(progress).toEqual([5]);

    const lines = readFileSync(path!, 'utf8').split('\n');
    lines[0] = lines[0]!.replace('"offset":0', '"offset":9');
    lines[2] = 'no record';
    lines[5] = lines[5]!.replace('"offset":4', '"offset":44');
    writeFileSync(path!, `${lines.join('\n')}{"offs`);
    const check = await verifyLog(pathOf());
    expect(check.damaged.map(({ line, problem }) => [line, problem])).toEqual([
      [1, 'it is not the header of this segment'],
      [3, 'it is not a record'],
      [6, 'its offset is 44, not 4'],
    ]);
    expect(check.damaged[1]).toMatchObject({ path, lineAt: lines.slice(0, 2).join('\n').length + 1 });
    expect(check.tornBytes).toBe(6);
  });
});

it.each([
  ['text that is no JSON', 'x'],
  ['bytes that are not UTF-8', undefined],
  ['a number', '5'],
  ['null', 'null'],
  ['a record', '{"offset":0,"type":"opened"}'],
  ['an offset that is not a whole number', '{"offset":0.5,"type":"segment"}'],
  ['fields that are missing', '{"offset":0,"type":"segment","log":"a"}'],
  ['a state that is no list', '{"offset":0,"type":"segment","frames":0,"holes":0,"log":"a","boot":"b","state":{}}'],
])('takes no header from %s', (_what, line) => {
  expect(readHeader(line)).toBeUndefined();
});

describe('a line of a log', () => {
  const scanned = (line: string) => {
    const { offset, at, event } = scan(line) ?? {};
    return offset === undefined ? undefined : { offset, at, type: event?.type ?? 'frame' };
  };

  it.each([
    ['a frame without its time', '{"offset":1,"type":"frame","data":"x"}'],
    ['an event without its fields', '{"offset":1,"type":"opened"}'],
    ['a line that is cut off', '{"offset":1,"type":"opened","at":5'],
    ['a line of another program', '{"level":"info"}'],
  ])('is no record: %s', (_what, line) => {
    expect(scanned(line)).toBeUndefined();
    expect(readRecord(line)).toBeUndefined();
  });

  const start = '{"offset":1,"type":"frame","feed":"market","connection":1,"receivedAt":5,';
  it.each([
    ['as a log writes it', '"isBinary":false,"encoding":"utf8","data":"\\"é"}', '"é'],
    ['in base64', '"isBinary":true,"encoding":"base64","data":"aGk="}', 'hi'],
    ['with other fields at the end', '"isBinary":false,"encoding":"utf8","data":"x","more":1}', 'x'],
    ['in another order', '"encoding":"utf8","isBinary":false,"data":"x"}', 'x'],
    ['whose payload is no text', '"isBinary":false,"encoding":"utf8","data":5}', undefined],
    ['whose payload is damaged', '"isBinary":false,"encoding":"utf8","data":"\\x"}', undefined],
  ])('has a frame %s', (_what, rest, text) => {
    const frameOf = (line: string) => {
      const record = frameIn(scan(line)!);
      return record?.type === 'frame' ? { ...record, text: record.text() } : undefined;
    };
    expect(frameOf(start + rest)).toEqual(
      text === undefined ? undefined : expect.objectContaining({ offset: 1, text }),
    );
  });

  it('is read next to lines that are not ASCII, or not UTF-8', () => {
    const lines = new Lines(Buffer.concat([Buffer.from('a\né\n'), Buffer.from([0xff, 0x0a]), Buffer.from('b\nrest')]));
    const found: unknown[] = [];
    while (lines.next()) found.push(lines.line);
    expect(found).toEqual(['a', 'é', undefined, 'b']);
    expect(lines.rest.toString()).toBe('rest');
  });

  it('has its log time before its type, and that of its event after it', () => {
    const event = '"type":"opened","at":5,"feed":"market","connection":1}';
    expect(scanned(`{"offset":7,${event}`)).toEqual({ offset: 7, type: 'opened', at: 5 });
    expect(scanned(`{"offset":7,"at":9,${event}`)).toEqual({ offset: 7, type: 'opened', at: 9 });
    expect(readRecord(`{"offset":7,${event}`)).toMatchObject({ type: 'opened', at: 5, offset: 7 });
  });

  it.each([
    ['', true],
    ['\r', true],
    ['{"type":"of a later version"}', true],
    ['{"type":"frame"}', false],
    ['{"level":"info"}', false],
    ['x', false],
  ])('is skipped in a file, if it is empty or of a later version: %j', (line, isSkipped) => {
    expect(isOther(line)).toBe(isSkipped);
  });
});

describe('toLogError', () => {
  it.each([
    [new Error('the cable is out'), 'the cable is out.'],
    [Object.assign(new Error('x'), { code: 'ENOSPC' }), 'no space is left on the disk.'],
    [Object.assign(new Error('odd'), { code: 'EODD' }), 'odd.'],
  ])('says what happened: %s', (cause, words) => {
    expect(toLogError('read', 'p', cause)).toMatchObject({ code: 'log-corrupt', path: 'p', cause });
    expect(toLogError('write', 'p', cause).code).toBe('log-write-failed');
    expect(toLogError('write', 'p', cause).message).toContain(`Can't write the log p: ${words}`);
  });

  it('returns a LogError unchanged', () => {
    const error = toLogError('read', 'p', new Error('x'));
    expect(toLogError('write', 'q', error)).toBe(error);
  });
});

it('consume$ reports that it is not behind in a log whose writer file is gone', async () => {
  await write([opened(1_000), frame(1)]);
  rmSync(join(pathOf(), 'writer.json'));
  const consumer = feedLog(pathOf()).consume$('any', () => Promise.resolve(), { from: 'earliest' });
  expect(await firstValueFrom(consumer)).toMatchObject({ behind: 0, behindMs: 0 });
});
