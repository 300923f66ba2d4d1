import { describe, expect, it, jest } from '@jest/globals';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { lastValueFrom, of, Subject, take } from 'rxjs';
import { feedLog, inspectLog, type LogRecord, verifyLog } from '../../src/log/index.js';
import { atExit } from '../../src/log/at-exit.js';
import { Bell, ringerOf } from '../../src/log/bell.js';
import { consume$, type ReadableLog } from '../../src/log/consume.js';
import { Durable } from '../../src/log/durable.js';
import { frameIn, scan } from '../../src/log/lines.js';
import { closes, onceClosed } from '../../src/log/lock.js';
import { LogReader } from '../../src/log/reader.js';
import type { Disk } from '../../src/log/segments.js';
import { frame, frames, opened, path, write } from './support.js';

const done = () => Promise.resolve();
const segments = () =>
  fs
    .readdirSync(path())
    .filter((name) => name.endsWith('.ndjson'))
    .map((name) => join(path(), name));

describe('a log whose folder is removed while it is written', () => {
  it.each<[string, 'error' | ((error: unknown) => void), object]>([
    ['errors', 'error', { code: 'log-write-failed' }],
    [
      'errors with what `onError` throws',
      () => {
        throw new Error('mine');
      },
      { message: 'mine' },
    ],
  ])('%s', async (_what, onError, error) => {
    const source = new Subject<unknown>();
    const ended = lastValueFrom(source.pipe(feedLog(path()).append({ onError })));
    fs.rmSync(path(), { recursive: true });
    source.next(opened());
    await expect(ended).rejects.toMatchObject(error);
  });

  it('goes on if `onError` returns', async () => {
    const source = new Subject<unknown>();
    const failed = new Promise((resolve) => {
      source.pipe(feedLog(path()).append({ onError: resolve })).subscribe();
    });
    fs.rmSync(path(), { recursive: true });
    source.next(opened());
    expect(await failed).toMatchObject({ code: 'log-write-failed' });
    expect(source.observed).toBe(true);
    source.complete();
  });
});

describe('inspectLog', () => {
  it('shows segments that are damaged or empty, and consumers before their first commit', async () => {
    await write([opened(), ...frames(0, 100)], { segmentBytes: 2_000 });
    const [first, second, third] = segments();
    fs.writeFileSync(second!, 'damaged\n');
    fs.writeFileSync(third!, '');
    fs.writeFileSync(segments().at(-1)!, '');
    fs.mkdirSync(path('market/cursors'));
    fs.writeFileSync(path('market/cursors/db.json'), '');
    const { segments: shown, end, consumers } = await inspectLog(path());
    expect(shown.slice(0, 3)).toMatchObject([
      { path: first, frames: 0, from: 1_000 },
      { path: second, frames: 0, from: undefined, to: undefined },
      { path: third, frames: 0, bytes: 0 },
    ]);
    expect(shown.at(-1)).toMatchObject({ end, frames: 0, bytes: 0 });
    expect(consumers).toEqual([{ name: 'db', position: undefined, behind: end, behindMs: 0 }]);
  });

  it('shows how far consumers are behind in a log without records', async () => {
    fs.mkdirSync(path('market/cursors'), { recursive: true });
    fs.writeFileSync(path('market/cursors/db.json'), '{"offset":3}');
    expect((await inspectLog(path())).consumers).toMatchObject([{ name: 'db', behind: 0, behindMs: 0 }]);
  });

  it('skips lines of a file that are of a later version', async () => {
    fs.writeFileSync(path('x.ndjson'), '{"type":"new"}\n');
    expect(await verifyLog(path('x.ndjson'))).toMatchObject({ records: 0, damaged: [] });
  });
});

describe('consume$', () => {
  const recordsOf = (...all: LogRecord[][]) => {
    let isClosed = false;
    return {
      position: { offset: 1, log: 'a' },
      next: () => Promise.resolve(isClosed ? undefined : all.shift()),
      close: () => {
        isClosed = true;
      },
    };
  };
  const logOf = (more: Partial<ReadableLog> = {}): ReadableLog => ({
    path: path(),
    now: () => 0,
    openReader: () => recordsOf([{ type: 'opened', at: 1, feed: 'market', connection: 1 }]),
    openCursor: () => ({ position: undefined, commit: () => undefined, close: () => undefined }),
    newest: () => undefined,
    ...more,
  });

  it.each([
    [undefined, 0],
    [{ offset: 3, at: 9 }, 2],
  ])('tells how far it is behind if the end is %j and its place has no time', async (end, behind) => {
    const committed$ = consume$(logOf({ newest: () => end }), 'db', done, {});
    expect(await lastValueFrom(committed$)).toEqual({ committed: 1, behind, behindMs: 0 });
  });

  it('reads nothing if it is unsubscribed while its cursor is being opened', async () => {
    let open!: (cursor: Awaited<ReturnType<ReadableLog['openCursor']>>) => void;
    const log = logOf({ openCursor: () => new Promise((resolve) => (open = resolve)) });
    const work = jest.fn(done);
    consume$(log, 'db', work, {}).subscribe().unsubscribe();
    const closed = new Promise<void>((resolve) => open({ position: undefined, commit: done, close: resolve }));
    await closed;
    expect(work).not.toHaveBeenCalled();
  });

  it('works on all records if it should error where some are missing, and none is', async () => {
    await write([opened(), frame(1)]);
    const committed$ = feedLog(path()).consume$('db', done, { onLoss: 'error' });
    expect(await lastValueFrom(committed$.pipe(take(1)))).toMatchObject({ committed: 2 });
  });

  it('needs a folder for its cursor', async () => {
    fs.writeFileSync(path('x.ndjson'), '');
    const consumed = lastValueFrom(feedLog(path('x.ndjson')).consume$('db', done));
    await expect(consumed).rejects.toMatchObject({ code: 'log-write-failed' });
  });
});

it.each([
  ['a time that no date has', '{"offset":1,"at":9e99,"type":"opened","feed":"market","connection":1}'],
  [
    'a frame with such a time',
    '{"offset":1,"at":5,"type":"frame","feed":"market","connection":1,"receivedAt":9e99,"isBinary":false,"encoding":"utf8","data":"x"}',
  ],
])('a line with %s is no record', (_what, line) => {
  const scanned = scan(line);
  expect(scanned && frameIn(scanned)).toBeUndefined();
});

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
