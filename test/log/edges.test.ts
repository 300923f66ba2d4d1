import { describe, expect, it, jest } from '@jest/globals';
import * as fs from 'node:fs';
import { lastValueFrom, of } from 'rxjs';
import { atExit } from '../../src/log/at-exit.js';
import { Bell, ringerOf } from '../../src/log/bell.js';
import { Durable } from '../../src/log/durable.js';
import { closes, onceClosed } from '../../src/log/lock.js';
import { LogReader } from '../../src/log/reader.js';
import type { Disk } from '../../src/log/segments.js';
import { done, opened, path, segments, write } from './support.js';

it('writers share one listener of the end of the process', () => {
  const before = process.listenerCount('exit');
  const removals = [atExit(() => undefined), atExit(() => undefined)];
  expect(process.listenerCount('exit')).toBe(before + 1);
  for (const remove of [...removals, ...removals]) remove();
  expect(process.listenerCount('exit')).toBe(before);
});

it('a ring before a reader waits is not lost', async () => {
  const bell = new Bell(path(), () => () => undefined, false);
  bell.listen();
  ringerOf(path())();
  await bell.heard();
  bell.close();
});

it('who waits for a path waits for all that still close there', async () => {
  const ends: (() => void)[] = [];
  const closing = () => closes('path', new Promise<void>((resolve) => ends.push(resolve)));
  closing();
  const first = lastValueFrom(onceClosed('path', () => of('first')));
  closing();
  ends[0]!();
  await first;
  let isFree = false;
  const second = lastValueFrom(onceClosed('path', () => of((isFree = true))));
  expect(isFree).toBe(false);
  ends[1]!();
  expect(await second).toBe(true);
});

it('a disk that loses bytes of an open or of a complete file is reported', () => {
  const failure = new Error('EIO');
  const disk = {
    fdatasync: (_fd: number, call: (error: Error) => void) => call(failure),
    close: () => undefined,
  } as unknown as Disk;
  const [failed, closed] = [jest.fn(), jest.fn()];
  const durable = new Durable(path(), 0, disk, { failed, closed });
  durable.isDirty = true;
  durable.sync(1);
  durable.complete(1);
  durable.closeComplete();
  expect(failed.mock.calls).toEqual([[failure], [failure]]);
  expect(closed).not.toHaveBeenCalled();
});

describe('a reader', () => {
  const readerOf = (target: string, more: object = {}, isFile = false) => {
    const bell = { listen: () => undefined, heard: done, close: () => undefined } as unknown as Bell;
    const machine = { disk: fs, now: Date.now, bell, gunzip: (bytes: Buffer) => Promise.resolve(bytes), turn: done };
    const settings = { from: 'earliest', follow: true, onDamage: 'gap' } as const;
    return new LogReader(target, settings, { ...machine, bufferBytes: 1_000, ...more }, isFile);
  };

  it('follows a file that grows while it waits', async () => {
    const line = '{"type":"ticket-requested","at":1,"feed":"market"}\n';
    fs.writeFileSync(path('x.ndjson'), line);
    const heard = () => {
      fs.appendFileSync(path('x.ndjson'), line);
      return done();
    };
    const bell = { listen: () => undefined, heard, close: () => undefined };
    const reader = readerOf(path('x.ndjson'), { bell }, true);
    for (const offset of [0, 1]) expect(await reader.next()).toMatchObject([{ offset }]);
    reader.close();
  });

  it.each([
    ['read', { read: (...args: readonly unknown[]) => (args.at(-1) as (error: Error) => void)(new Error('EIO')) }],
    [
      'opened',
      {
        openSync: () => {
          throw Object.assign(new Error('no'), { code: 'EACCES' });
        },
      },
    ],
  ])('fails if a segment can not be %s', async (_what, broken) => {
    await write([opened()]);
    const reader = readerOf(path(), { disk: { ...fs, ...broken } });
    await expect(reader.next()).rejects.toMatchObject({ code: 'log-corrupt' });
    reader.close();
  });

  it('closes its file if it is closed while it reads', async () => {
    await write([opened()]);
    const closed: number[] = [];
    const reader = readerOf(path(), {
      disk: {
        ...fs,
        read: (...args: Parameters<typeof fs.read>) => {
          reader.close();
          fs.read(...args);
        },
        closeSync: (fd: number) => {
          closed.push(fd);
          fs.closeSync(fd);
        },
      },
    });
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
    const reader = readerOf(path(), {
      gunzip: (bytes: Buffer) => {
        reader.close();
        return Promise.resolve(bytes);
      },
    });
    expect(await reader.next()).toBeUndefined();
  });
});
