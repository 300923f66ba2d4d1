import { describe, expect, it } from '@jest/globals';
import * as fs from 'node:fs';
import { lastValueFrom, toArray } from 'rxjs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { feedLog, inspectLog, verifyLog } from '../../src/log/index.js';
import { openLog } from '../../src/log/recovery.js';
import { LogReader } from '../../src/log/reader.js';
import { type Disk, headOf, listSegments, type Machine } from '../../src/log/segments.js';
import type { From } from '../../src/log/records.js';
import { frames, opened, path, read, segments, short, write } from './support.js';

const compress = (segment: string): void => {
  fs.writeFileSync(`${segment}.gz`, gzipSync(fs.readFileSync(segment)));
  fs.rmSync(segment);
};
const remove = (segment: string): void => fs.rmSync(segment);
const stored = async (): Promise<readonly string[]> => {
  await write([opened(), ...frames(0, 60)], { segmentBytes: 2_000 });
  expect(segments().length).toBeGreaterThan(4);
  return segments();
};

/** A disk on which something happens once, directly after the folder is listed. */
const changing = (change: () => void): Disk => {
  let isDone = false;
  const readdirSync = (folder: string) => {
    const names = fs.readdirSync(folder);
    if (!isDone) change();
    isDone = true;
    return names;
  };
  return { ...fs, readdirSync } as unknown as Disk;
};

const readOn = async (disk: Disk, from: From) => {
  const bell = { listen: () => undefined, heard: () => Promise.resolve(), close: () => undefined };
  const gunzip = (bytes: Buffer) => Promise.resolve(gunzipSync(bytes));
  const machine = { disk, now: Date.now, bell, gunzip, turn: () => Promise.resolve(), bufferBytes: 1_000 };
  const reader = new LogReader(path(), { from, follow: false, onDamage: 'gap' }, machine as never);
  const records = [];
  for (let batch = await reader.next(); batch !== undefined; batch = await reader.next()) records.push(...batch);
  return short(records);
};
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
    const got = await readOn(
      changing(() => all.slice(0, -1).forEach(remove)),
      { time: 1_010 },
    );
    expect(got.at(-1)).toBe('60:{"n":59}');
  });

  it('does not stop the writer that opens the log', async () => {
    const all = await stored();
    fs.writeFileSync(path('market/0000000000000061.ndjson'), '{"offset":61,"ty');
    const disk = changing(() => {
      remove(path('market/0000000000000061.ndjson'));
      compress(all.at(-1)!);
    });
    const machine = {
      disk,
      lockFile: () => true,
      boot: () => 'boot',
      newId: () => 'id',
      now: () => 5,
    } as unknown as Machine;
    const { tip, place } = openLog(path(), machine);
    fs.closeSync(tip.fd);
    expect(place.frames).toBe(60);
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
  const damaged = async (n: number, cut: (bytes: Buffer) => Buffer) => {
    const all = await stored();
    const before = await read().then(short);
    compress(all[n]!);
    const file = `${all[n]!}.gz`;
    fs.writeFileSync(file, cut(fs.readFileSync(file)));
    return { file, before };
  };
  const ways: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
    ['in the middle', (bytes) => Buffer.from(bytes).fill(0x55, 40, 60)],
    ['at its beginning', (bytes) => Buffer.from(bytes).fill(0, 0, 20)],
    ['cut off', (bytes) => bytes.subarray(0, 100)],
    ['empty', () => Buffer.alloc(0)],
  ];

  it.each(ways)('%s is a gap for readers, and one damaged file for the status', async (_what, cut) => {
    const { file, before } = await damaged(1, cut);
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
    const { damaged: lines } = await verifyLog(path());
    expect(lines).toEqual([expect.objectContaining({ path: file })]);
  });

  it.each(ways)('%s does not stop a writer, even if it is the newest one', async (_what, cut) => {
    await damaged(segments.length, cut);
    const last = segments().at(-1)!;
    if (!last.endsWith('.gz')) {
      compress(last);
      fs.writeFileSync(`${last}.gz`, cut(fs.readFileSync(`${last}.gz`)));
    }
    await write([opened(5_000), ...frames(60, 62)]);
    const got = await lastValueFrom(feedLog(path()).read$({ follow: false }).pipe(toArray()));
    const offsets = got.flatMap((record) => ('offset' in record ? (record.offset ?? []) : []));
    expect(new Set(offsets).size).toBe(offsets.length);
    expect(short(got).filter((each) => each.includes('log-damaged')).length).toBeGreaterThan(0);
  });
});
