import { describe, expect, it } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { firstValueFrom, skipWhile } from 'rxjs';
import { feedLog, inspectLog, LogError, verifyLog } from '../../src/log/index.js';
import { toLogError } from '../../src/log/log-error.js';
import { isOther, Lines, readHeader, readRecord } from '../../src/log/lines.js';
import { gapOf } from '../operators/stream.js';
import { done, frame, frames, opened, path as pathOf, segments, startWriter, write } from './support.js';

describe('inspectLog', () => {
  it('shows an empty folder as a log without records', async () => {
    mkdirSync(pathOf());
    expect(await inspectLog(pathOf())).toMatchObject({
      ...{ line: undefined, segments: [], offset: 0, end: 0, frames: 0, bytes: 0, from: undefined, to: undefined },
      ...{ writer: undefined, consumers: [] },
    });
    mkdirSync(pathOf('market/cursors'));
    expect((await inspectLog(pathOf())).consumers).toEqual([]);
    writeFileSync(pathOf('market/cursors/db.json'), '{"offset":3}');
    expect((await inspectLog(pathOf())).consumers).toMatchObject([{ name: 'db', behind: 0, behindMs: 0 }]);
  });

  it.each([inspectLog, verifyLog])('rejects with a LogError if there is no such folder: %p', async (read) => {
    const path = pathOf('missing');
    await expect(read(path)).rejects.toThrow(LogError);
    await expect(read(path)).rejects.toMatchObject({ path });
    await expect(read(path)).rejects.toThrow(
      `Can't read the log ${path}: there is no such file or folder. Check the path. If nothing has written this log yet, write it first. See `,
    );
  });

  it('shows segments, the writer, and how far each consumer is behind', async () => {
    const { send, end } = startWriter(feedLog(pathOf(), { segmentBytes: 4_000, maxAgeMs: 1e9 }));
    send(opened(), ...frames(0, 200));
    expect((await inspectLog(pathOf())).writer).toMatchObject({ closed: false, isRunning: true });
    await end();
    const consume = (name: string, until: number) =>
      firstValueFrom(
        feedLog(pathOf())
          .consume$(name, done, { maxBatch: 10 })
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
    await write([opened(), frame(1)]);
    const [path] = segments();
    const bytes = readFileSync(path!);
    writeFileSync(`${path}.gz`, gzipSync(bytes));
    rmSync(path!);
    expect(await inspectLog(pathOf())).toMatchObject({ end: 2, frames: 1, segments: [{ isCompressed: true }] });
    rmSync(`${path}.gz`);
    writeFileSync(path!, bytes.toString().replace('"type":"segment"', '"type":"sediment"'));
    expect(await inspectLog(pathOf())).toMatchObject({ frames: 0, segments: [{ offset: 0, from: 1_000, to: 1_001 }] });
  });

  it('shows segments that are damaged or empty, and consumers before their first commit', async () => {
    await write([opened(), ...frames(0, 100)], { segmentBytes: 2_000 });
    const [first, second, third] = segments();
    writeFileSync(second!, 'damaged\n');
    writeFileSync(third!, '');
    writeFileSync(segments().at(-1)!, '');
    mkdirSync(pathOf('market/cursors'));
    writeFileSync(pathOf('market/cursors/db.json'), '{"isNew":true}');
    const { segments: shown, end, consumers } = await inspectLog(pathOf());
    expect(shown.slice(0, 3)).toMatchObject([
      { path: first, frames: 0, from: 1_000 },
      { path: second, frames: 0, from: undefined, to: undefined },
      { path: third, frames: 0, bytes: 0 },
    ]);
    expect(shown.at(-1)).toMatchObject({ end, frames: 0, bytes: 0 });
    expect(consumers).toEqual([{ name: 'db', position: undefined, behind: end, behindMs: 0 }]);
  });
});

it('a compression that was killed has left a copy that is used in place of the segment, or a part that is removed', async () => {
  await write([opened(), ...frames(0, 50)], { segmentBytes: 2_000 });
  const [path] = segments();
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path!)));
  writeFileSync(`${segments().at(-1)}.gz.tmp`, 'half');
  expect((await inspectLog(pathOf())).segments[0]).toMatchObject({ offset: 0, isCompressed: true });
  await write([opened(2_000), frame(99)], { compress: true });
  expect(segments()).not.toContain(path);
  expect(readdirSync(pathOf()).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  expect(await verifyLog(pathOf())).toMatchObject({ frames: 51, damaged: [] });
});

describe('verifyLog', () => {
  it('names each line that is damaged, counts the bytes of a torn one, and reports its progress', async () => {
    await write([opened(), frame(1), gapOf(1_001, 1_002), { ...gapOf(1_002, 1_003), missed: 7 }, frame(4)]);
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
      [1, "it isn't the header of this segment"],
      [3, 'its checksum is wrong'],
      [6, 'its checksum is wrong'],
    ]);
    expect(check.damaged[1]).toMatchObject({ path, lineAt: lines.slice(0, 2).join('\n').length + 1 });
    expect(check.tornBytes).toBe(6);
  });
});

it.each([
  ...['x', undefined, '5', 'null', '{"offset":0,"type":"opened"}', '{"offset":0.5,"type":"segment"}'],
  '{"offset":0,"type":"segment","log":"a"}',
  '{"offset":0,"type":"segment","frames":0,"holes":0,"log":"a","boot":"b","state":{}}',
])('the line %s is no header of a segment', (line) => {
  expect(readHeader(line)).toBeUndefined();
});

describe('a line of a log', () => {
  /** Goes to the last one of some lines, after it has read the frames before. */
  const lastOf = (...texts: readonly string[]): Lines => {
    const lines = new Lines(Buffer.from(texts.map((text) => `${text}\n`).join('')));
    for (let n = 0; lines.next() && n < texts.length - 1; n += 1) lines.scan();
    return lines;
  };
  const scanned = (line: string) => {
    const { offset, at, event } = lastOf(line).scan() ?? {};
    return offset === undefined ? undefined : { offset, at, type: event?.type ?? 'frame' };
  };

  it.each([
    ['a frame without its time', '{"offset":1,"type":"frame","data":"x"}'],
    ['an event without its fields', '{"offset":1,"type":"opened"}'],
    ['a line that is cut off', '{"offset":1,"type":"opened","at":5'],
    ['a line of another program', '{"level":"info"}'],
    ['a time that no date has', '{"offset":1,"at":9e99,"type":"opened","feed":"market","connection":1}'],
  ])('is no record: %s', (_what, line) => {
    expect(scanned(line)).toBeUndefined();
    expect(readRecord(line)).toBeUndefined();
  });

  const start = '{"offset":1,"type":"frame","feed":"market","connection":1,"receivedAt":5,';
  const payloads: [string, string, string | undefined][] = [
    ['as a log writes it', '"isBinary":false,"encoding":"utf8","data":"\\"é"}', '"é'],
    ['that is empty', '"isBinary":false,"encoding":"utf8","data":""}', ''],
    ['in base64', '"isBinary":true,"encoding":"base64","data":"aGk="}', 'hi'],
    ['with a code unit that is escaped', '"isBinary":false,"encoding":"utf8","data":"\\u0007\\u00e9"}', '\u0007é'],
    ['with other fields at the end', '"isBinary":false,"encoding":"utf8","data":"x","more":1}', 'x'],
    ['in another order', '"encoding":"utf8","isBinary":false,"data":"x"}', 'x'],
    ['whose payload is no text', '"isBinary":false,"encoding":"utf8","data":5}', undefined],
    ['whose payload is damaged', '"isBinary":false,"encoding":"utf8","data":"\\x"}', undefined],
    ['whose payload does not end', '"isBinary":false,"encoding":"utf8","data":"}', undefined],
    ['whose payload ends with an escape', '"isBinary":false,"encoding":"utf8","data":"x\\"}', undefined],
    ['that is cut off', '"isBinary":false,"encoding":"utf8","data":"x"', undefined],
  ];
  const others = [
    '"isBinary":false,"encoding":"utf8","data":"y"}',
    '"isBinary":true,"encoding":"base64","data":"eQ=="}',
  ];
  const frameOf = (...lines: readonly string[]) => {
    const last = lastOf(...lines);
    const found = last.scan();
    const record = found && last.frame(found);
    return record?.type === 'frame' ? { ...record, text: record.text() } : undefined;
  };

  it.each(payloads)('has a frame %s, whatever is before it', (_what, rest, text) => {
    const expected = text === undefined ? undefined : expect.objectContaining({ offset: 1, receivedAt: 5, text });
    expect(frameOf(start + rest)).toEqual(expected);
    for (const other of others) expect(frameOf(start + other, start + rest)).toEqual(expected);
  });

  it.each(['"offset":,', '"offset":-1,', '"offset":1.5,', '"offset":x,'])('has no frame with %s', (offset) => {
    const regular = start + others[0]!;
    expect(frameOf(regular, regular.replace('"offset":1,', offset))).toBeUndefined();
  });

  it.each(['', '9e99', '10000000000000000'])('has no frame with the time "%s", which no date has', (time) => {
    const regular = start + others[0]!;
    const line = regular.replace('"receivedAt":5', `"receivedAt":${time}`);
    expect(frameOf(regular, line)).toBeUndefined();
    expect(frameOf(regular, line.replace('"type"', '"at":5,"type"'))).toBeUndefined();
  });

  it('has a frame with a time that has a fraction, or an exponent', () => {
    const regular = start + others[0]!;
    for (const time of ['5.5', '7e3', '-3'])
      expect(frameOf(regular, regular.replace('At":5', `At":${time}`))?.receivedAt).toBe(Number(time));
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

it('a LogError says what the system reports, and stays as it is', () => {
  const full = Object.assign(new Error('x'), { code: 'ENOSPC' });
  const error = toLogError('write', 'p', full);
  expect(error).toMatchObject({ code: 'log-write-failed', path: 'p', cause: full });
  expect(error.message).toContain("Can't write the log p: no space is left on the disk.");
  expect(toLogError('write', 'q', error)).toBe(error);
  const other = toLogError('read', 'p', Object.assign(new Error('odd'), { code: 'EODD' }));
  expect(other).toMatchObject({
    code: 'log-corrupt',
    message: expect.stringContaining("Can't read the log p: odd. Check the path and the disk"),
  });
});
