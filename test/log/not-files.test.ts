/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { basename, dirname } from 'node:path';
import { firstValueFrom } from 'rxjs';
import { Bell } from '../../src/log/bell.js';
import { feedLog, inspectLog, verifyLog } from '../../src/log/index.js';
import { done, frame, frames, opened, path, read, readerOf, segments, write } from './support.js';

/** What may be where a log has a file. */
const things: Readonly<Record<string, (at: string) => void>> = {
  'a FIFO': (at) => execFileSync('mkfifo', [at]),
  'a folder': (at) => fs.mkdirSync(at),
  'a device': (at) => fs.symlinkSync('/dev/zero', at),
  'a terminal': (at) => fs.symlinkSync('/dev/ptmx', at),
};

const refusal = /can't be a part of a log|is a folder/;

describe.each(Object.entries(things))('%s', (_what, make) => {
  const next = '0000000000000021.ndjson';
  const stored = async () => {
    await write([opened(), ...frames(0, 20)]);
    fs.mkdirSync(path('market/cursors'), { recursive: true });
  };

  it.each(['0000000000000000.ndjson', '0000000000000000.ndjson.gz', next, `${next}.gz`])(
    'with the name %s is an error for a reader and for log status --verify, and never blocks them',
    async (name) => {
      await stored();
      fs.rmSync(path(`market/${name}`), { force: true });
      make(path(`market/${name}`));
      const error = { code: 'log-corrupt', path: path(`market/${name}`) };
      await expect(read()).rejects.toMatchObject(error);
      await expect(
        firstValueFrom(feedLog(path()).consume$('db', done, { maxBatch: 100, from: { offset: 99 } })),
      ).rejects.toMatchObject(error);
      await expect(verifyLog(path())).rejects.toMatchObject(error);
      await expect(inspectLog(path())).rejects.toMatchObject(error);
    },
  );

  it('with the name of the newest segment or of the lock is an error for the writer', async () => {
    await stored();
    make(path(`market/${next}`));
    await expect(write([frame(30)])).rejects.toThrow(refusal);
    fs.rmSync(path(`market/${next}`), { recursive: true });
    fs.rmSync(path('market/writer.json'));
    make(path('market/writer.json'));
    await expect(write([frame(30)])).rejects.toThrow(refusal);
  });

  it('with the name of a cursor is an error for its consumer, and shown by the status', async () => {
    await stored();
    make(path('market/cursors/db.json'));
    await expect(firstValueFrom(feedLog(path()).consume$('db', done))).rejects.toThrow(refusal);
    await expect(feedLog(path()).committed('db')).rejects.toMatchObject({ code: 'log-corrupt' });
    expect((await inspectLog(path())).consumers).toMatchObject([
      { name: 'db', problem: expect.stringContaining("isn't a file") },
    ]);
  });
});

/** A reader for which time stands still: only a ring wakes it. */
const waiting = (folder = path()) =>
  readerOf({ now: () => 0, bell: new Bell(folder, () => () => undefined) }, {}, folder);

describe('the first record of a log', () => {
  it.each([
    ['whose folder is there', (folder: string) => fs.mkdirSync(folder, { recursive: true })],
    ['whose folder is made', (folder: string) => fs.mkdirSync(dirname(folder), { recursive: true })],
    ['whose folders are made', () => undefined],
  ])('%s wakes a reader of another process without a timer', async (_what, prepare) => {
    await write([opened(), frame(1)], {}, path('source'));
    const folder = path('a/b/market');
    prepare(folder);
    const reader = waiting(folder);
    const first = reader.next();
    await new Promise(setImmediate);
    fs.mkdirSync(dirname(folder), { recursive: true });
    await new Promise(setImmediate);
    fs.mkdirSync(folder, { recursive: true });
    await new Promise(setImmediate);
    const [segment] = fs.readdirSync(path('source')).filter((name) => name.endsWith('.ndjson'));
    fs.copyFileSync(path(`source/${segment}`), `${folder}/${basename(segment!)}`);
    expect(await first).toMatchObject([{ offset: 0 }, { offset: 1 }]);
    reader.close();
  });

  it('wakes a reader of this process in the turn in which it is written', async () => {
    const reader = waiting();
    const first = reader.next();
    await write([opened(), frame(1)]);
    expect(await first).toMatchObject([{ offset: 0 }, { offset: 1 }]);
    reader.close();
  });

  it('also wakes a reader after the folder was removed and made again', async () => {
    await write([opened(), frame(1)]);
    const reader = waiting();
    expect(await reader.next()).toHaveLength(2);
    const later = reader.next();
    fs.rmSync(path(), { recursive: true });
    await write([opened(5_000), frame(2, 5_001)]);
    expect(await later).toEqual(expect.arrayContaining([expect.objectContaining({ type: 'frame' })]));
    reader.close();
  });
});

it('a reader gives back the memory that one large frame needed', async () => {
  const large = Object.assign(frame(1), { data: Buffer.alloc(4_000_000, 'x') });
  await write([opened(), large, frame(2)]);
  const sizes: number[] = [];
  const disk = {
    ...fs,
    read: (fd: number, buffer: Buffer, ...rest: readonly unknown[]) => {
      sizes.push(buffer.length);
      (fs.read as (...all: readonly unknown[]) => void)(fd, buffer, ...rest);
    },
  };
  const reader = readerOf({ disk }, { follow: false });
  for (let records = await reader.next(); records !== undefined;) records = await reader.next();
  expect(Math.max(...sizes)).toBeGreaterThan(4_000_000);
  expect(sizes.at(-1)).toBe(1_000);
  expect(segments()).toHaveLength(1);
});
