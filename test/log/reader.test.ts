import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import * as fs from 'node:fs';
import { inspectLog, verifyLog } from '../../src/log/index.js';
import { openLog } from '../../src/log/recovery.js';
import { type Disk, headOf, listSegments, type Machine } from '../../src/log/segments.js';
import type { From } from '../../src/log/records.js';
import { Frame } from '../../src/protocol/frame.js';
import { compress, done, frames, offsetsOf, opened, path, read, readerOf, segments, short, write } from './support.js';

const remove = (segment: string): void => fs.rmSync(segment);
const stored = async (): Promise<readonly string[]> => {
  await write([opened(), ...frames(0, 60)], { segmentBytes: 2_000 });
  expect(segments().length).toBeGreaterThan(4);
  return segments();
};

/** A disk on which something happens once, directly after the folder is listed. */
const changing = (...changes: (() => void)[]): Disk => {
  const readdirSync = (folder: string) => {
    const names = fs.readdirSync(folder);
    changes.pop()?.();
    return names;
  };
  return { ...fs, readdirSync } as unknown as Disk;
};

const recordsOn = async (disk: Disk, from: From) => {
  const reader = readerOf({ disk }, { from, follow: false });
  const records = [];
  for (let batch = await reader.next(); batch !== undefined; batch = await reader.next()) records.push(...batch);
  return records;
};
const readOn = async (disk: Disk, from: From) => short(await recordsOn(disk, from));

it('gives frames that stay as they were written while it reads on', async () => {
  const texts = fc.sample(fc.oneof(fc.json(), fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' })), {
    numRuns: 300,
    seed: 1,
  });
  const binary = fc.sample(fc.uint8Array({ maxLength: 90 }), { numRuns: 100, seed: 1 });
  const payloads = [...texts.map((text) => Buffer.from(text)), ...binary.map((bytes) => Buffer.from(bytes))];
  const written = payloads.map((data, n) => new Frame('market', data, n % 7 === 3, 1_000 + (n >> 2) * (n & 3), n >> 5));
  await write([opened(), ...written]);
  const got = (await recordsOn(fs, 'earliest')).filter((record) => record.type === 'frame');
  expect(got.map(({ offset: _offset, position: _position, ...frame }) => frame)).toEqual(
    written.map((frame) => ({ ...frame })),
  );
});

describe('a listing that is out of date when it is used', () => {
  const places: readonly From[] = ['earliest', { time: 1_030 }, { offset: 30 }, 'latest'];

  it.each(places)('does not stop a reader that begins at %j when all segments are compressed', async (from) => {
    const all = await stored();
    const before = await readOn(fs, from);
    const disk = changing(() => all.slice(0, -1).forEach(compress));
    expect(await readOn(disk, from)).toEqual(before);
  });

  it.each(places)('does not stop a reader that begins at %j when the oldest segments are removed', async (from) => {
    const all = await stored();
    const disk = changing(() => all.slice(0, 3).forEach(remove));
    const got = await readOn(disk, from);
    expect(got).toEqual(await read({ from }).then(short));
    expect(got.length).toBeGreaterThan(0);
  });

  it('does not stop a reader when it is removed up to the newest segment', async () => {
    const all = await stored();
    const disk = changing(() => all.slice(0, -1).forEach(remove));
    expect((await readOn(disk, { time: 1_010 })).at(-1)).toBe('60:{"n":59}');
  });

  it('does not stop the writer that opens the log', async () => {
    const all = await stored();
    fs.writeFileSync(path('market/0000000000000061.ndjson'), '{"offset":61,"ty');
    const disk = changing(() => {
      remove(path('market/0000000000000061.ndjson'));
      compress(all.at(-1)!);
    });
    const machine = { disk, lockFile: () => true, newId: () => 'id', now: () => 5 };
    const { tip, generation } = openLog(path(), machine as unknown as Machine);
    fs.closeSync(tip.fd);
    expect(generation.frames).toBe(60);
  });

  it('finds a segment under its new name, or not at all', async () => {
    const all = await stored();
    const listed = listSegments(fs, path());
    compress(all[1]!);
    remove(all[2]!);
    const heads = listed.map((segment) => headOf(fs, segment));
    expect(heads.map((head) => head?.isCompressed)).toEqual([false, true, undefined, ...all.slice(3).map(() => false)]);
    expect(heads[1]?.header?.offset).toBe(listed[1]!.offset);
  });

  it('is an error if a name leads nowhere, and not an endless loop', async () => {
    fs.mkdirSync(path());
    fs.symlinkSync(path('nowhere'), path('market/0000000000000000.ndjson'));
    await expect(read()).rejects.toMatchObject({ code: 'log-corrupt' });
  });
});

describe('a compressed segment that is damaged', () => {
  const damage = (segment: string, cut: (bytes: Buffer) => Buffer): string => {
    compress(segment);
    fs.writeFileSync(`${segment}.gz`, cut(fs.readFileSync(`${segment}.gz`)));
    return `${segment}.gz`;
  };
  const ways: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
    ['in the middle', (bytes) => Buffer.from(bytes).fill(0x55, 40, 60)],
    ['at its beginning', (bytes) => Buffer.from(bytes).fill(0, 0, 20)],
    ['cut off', (bytes) => bytes.subarray(0, 100)],
    ['empty', () => Buffer.alloc(0)],
  ];

  it.each(ways)('%s is a gap for readers, and one damaged file for the status', async (_what, cut) => {
    const all = await stored();
    const before = await read().then(short);
    const file = damage(all[1]!, cut);
    for (const from of [{ time: 1_005 }, { time: 1_040 }, 'earliest', { offset: 3 }] as const) {
      const got = await read({ from }).then(short);
      expect(got.filter((each) => !before.includes(each) && !each.startsWith('-:'))).toEqual([]);
      expect(got.at(-1)).toBe('60:{"n":59}');
      if (from === 'earliest')
        expect(got.filter((each) => each.includes('gap'))).toEqual([expect.stringMatching(/^-:gap log-damaged \d+$/)]);
    }
    const status = await inspectLog(path());
    expect(status).toMatchObject({ offset: 0, end: 61 });
    expect(status.segments).toHaveLength(segments().length);
    expect((await verifyLog(path())).damaged).toEqual([expect.objectContaining({ path: file })]);
  });

  it.each(ways)('%s does not stop a writer, even if it is the newest one', async (_what, cut) => {
    const all = await stored();
    for (const each of [all[0]!, all.at(-1)!]) damage(each, cut);
    await write([opened(5_000), ...frames(60, 62)]);
    const got = await read();
    const offsets = offsetsOf(got);
    expect(new Set(offsets).size).toBe(offsets.length);
    expect(short(got).filter((each) => each.includes('log-damaged')).length).toBeGreaterThan(0);
  });
});

describe('a reader', () => {
  it('follows a file that grows while it waits', async () => {
    const line = '{"type":"ticket-requested","at":1,"feed":"market"}\n';
    fs.writeFileSync(path('x.ndjson'), line);
    const heard = () => {
      fs.appendFileSync(path('x.ndjson'), line);
      return done();
    };
    const bell = { listen: () => undefined, heard, close: () => undefined };
    const reader = readerOf({ bell }, {}, path('x.ndjson'));
    for (const offset of [0, 1]) expect(await reader.next()).toMatchObject([{ offset }]);
    reader.close();
  });

  const throwIt = () => {
    throw Object.assign(new Error('no'), { code: 'EACCES' });
  };
  it.each([
    ['read', { read: (...args: readonly unknown[]) => (args.at(-1) as (error: Error) => void)(new Error('EIO')) }],
    ['opened', { openSync: throwIt }],
  ])('fails if a segment can not be %s', async (_what, broken) => {
    await write([opened()]);
    const reader = readerOf({ disk: { ...fs, ...broken } });
    await expect(reader.next()).rejects.toMatchObject({ code: 'log-corrupt' });
    reader.close();
  });

  it('closes its file if it is closed while it reads', async () => {
    await write([opened()]);
    const closed: number[] = [];
    const closeSync = (fd: number) => fs.closeSync(closed[closed.push(fd) - 1]!);
    const read = (...args: Parameters<typeof fs.read>) => {
      reader.close();
      fs.read(...args);
    };
    const reader = readerOf({ disk: { ...fs, read, closeSync } });
    closed.length = 0;
    expect(await reader.next()).toBeUndefined();
    // One is the file whose header it looked at.
    expect(closed.length).toBeGreaterThan(0);
    for (const fd of closed) expect(() => fs.fstatSync(fd)).toThrow('EBADF');
  });

  it('ends if it is closed while it decompresses a segment', async () => {
    await write([opened()]);
    const [segment] = segments();
    fs.renameSync(segment!, `${segment}.gz`);
    const reader = readerOf({
      gunzip: (bytes: Buffer) => {
        reader.close();
        return Promise.resolve(bytes);
      },
    });
    expect(await reader.next()).toBeUndefined();
  });
});
