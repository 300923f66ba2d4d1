import { describe, expect, it, jest } from '@jest/globals';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { firstValueFrom, lastValueFrom, take, VirtualTimeScheduler } from 'rxjs';
import { feedLog, inspectLog, type LogError, type LogRecord } from '../../src/log/index.js';
import { consume$, type OpenedReader, type ReadableLog } from '../../src/log/consume.js';
import { type Place, startOf } from '../../src/protocol/place.js';
import { disconnected, gapOf } from '../operators/stream.js';
import { waitFor } from '../support/wait-for.js';
import { done, follow, frame, frames, gapsOf, offsetsOf, opened, path, placesOf, read } from './support.js';
import { segments, short, startWriter, texts, textsOf, tip, write } from './support.js';

const names = () => segments().map((each) => basename(each));

describe('append', () => {
  it('takes another generation after retention removed all records and a full disk kept the next header out', async () => {
    await write(frames(0, 25));
    const before = placesOf(await read());
    rmSync(segments()[0]!);
    writeFileSync(path('market/0000000000000025.ndjson'), '{"offset":25,"type');
    const { length } = readFileSync(path('market/writer.json'), 'utf8');
    const atStart = { ...tip(), offset: 0, closed: false };
    writeFileSync(path('market/writer.json'), JSON.stringify(atStart).padEnd(length));
    await write([frame(30)]);
    const after = placesOf(await read());
    expect([before.length, after.length, new Set([...before, ...after]).size]).toEqual([25, 1, 26]);
  });

  it.each<[string, 'error' | ((error: LogError) => void), object]>([
    ['log-write-failed', 'error', { code: 'log-write-failed' }],
    [
      'what `onError` throws',
      () => {
        throw new Error('mine');
      },
      { message: 'mine' },
    ],
  ])('errors with %s if its folder is removed', async (_what, onError, error) => {
    const { send, errors } = startWriter(feedLog(path()), { onError });
    rmSync(path(), { recursive: true });
    send(opened());
    await waitFor(() => errors.length > 0);
    expect(errors).toMatchObject([error]);
  });

  it('goes on without its folder if `onError` returns', async () => {
    const reported: LogError[] = [];
    const { send, errors, end } = startWriter(feedLog(path()), { onError: (error) => reported.push(error) });
    rmSync(path(), { recursive: true });
    send(opened());
    await waitFor(() => reported.length > 0);
    await end();
    expect([reported[0]!.code, errors]).toEqual(['log-write-failed', []]);
  });
});

describe('retention', () => {
  it('begins a new segment after an eighth of the age, even if the clock was set back', async () => {
    let time = 1_000_000_000_000;
    const now = jest.spyOn(Date, 'now').mockImplementation(() => time);
    const { send, end } = startWriter(feedLog(path(), { maxAgeMs: 80_000 }));
    for (const [n, step] of [0, 5_000, 6_000, -60_000, 1_000].entries()) {
      time += step;
      send(frame(n));
      await waitFor(async () => textsOf(await read()).length === n + 1);
    }
    await end();
    now.mockRestore();
    expect(names()).toHaveLength(3);
  });

  it('compresses closed segments, which still read the same', async () => {
    const { send, end } = startWriter(feedLog(path(), { segmentBytes: 4_000, compress: true }));
    send(opened(), ...frames(0, 100));
    await waitFor(() => names().filter((name) => name.endsWith('.gz')).length > 2);
    await end();
    expect(textsOf(await read())).toEqual(texts(0, 100));
  });
});

it('speed waits between records as recorded, divided by the speed, but not if the clock was set back', async () => {
  await write([1_000, 1_100, 1_300, 500, 600, 1_000].map((at, n) => frame(n, at)));
  const scheduler = new VirtualTimeScheduler();
  const emitted: number[] = [];
  let isDone = false;
  feedLog(path())
    .read$({ follow: false, speed: 10, scheduler })
    .subscribe({ next: () => emitted.push(scheduler.now()), complete: () => (isDone = true) });
  await waitFor(() => {
    scheduler.flush();
    return isDone;
  });
  expect(emitted).toEqual([0, 10, 30, 30, 40, 80]);
});

it('a reader that waits for its speed ends at once when it is closed', async () => {
  await write([frame(1, 1_000), frame(2, 3_600_000)]);
  const reader = feedLog(path()).read({ follow: false, speed: 1 })[Symbol.asyncIterator]();
  expect(await reader.next()).toMatchObject({ done: false });
  const next = reader.next();
  await reader.return?.();
  expect(await next).toMatchObject({ done: true });
});

describe('a reader', () => {
  it.each([
    ['counts frames, and those that their gaps count', { missed: 7 }, 7],
    ['has no number if one of their gaps has none', {}, NaN],
  ])('receives a gap in place of records that are gone: it %s', async (_what, missed, ofGap) => {
    const gap = { ...gapOf(1_030, 1_031), ...missed };
    await write([opened(), ...frames(0, 30), gap, ...frames(31, 90)], { segmentBytes: 2_000 });
    for (const { path: file, offset } of (await inspectLog(path())).segments) if (offset < 50) rmSync(file);
    const records = await read({ from: { offset: 1, frames: 0, holes: 0, line: tip().line } });
    const [found] = gapsOf(records) as [LogRecord & { missed?: number }];
    expect(found).toMatchObject({ failure: { code: 'log-behind' } });
    // The frame 30 was never appended.
    const { n } = JSON.parse(textsOf(records)[0]!) as { readonly n: number };
    expect(found.missed ?? NaN).toBe(n - 1 + ofGap);
    // Who goes on after the status, but before the gap, receives both again.
    const [status] = records as [LogRecord & { position: Place }];
    expect([status.type, status.position.offset]).toEqual(['opened', 1]);
    expect(await read({ from: status.position })).toEqual(records);
  });

  it('starts from the beginning if the folder has another log, and at the end if it is shorter, with a gap', async () => {
    await write(frames(0, 5));
    const records = await read({ from: { offset: 3, line: 'another' } });
    expect(records[0]).toMatchObject({ type: 'gap', failure: { code: 'log-behind' } });
    expect(textsOf(records)).toHaveLength(5);
    expect(gapsOf(await read({ from: { offset: 9 } }))).toHaveLength(1);
  });

  it('reads a log or a file from its earliest record, and goes on, by default', async () => {
    await write([opened(), frame(1)]);
    const [, ...lines] = readFileSync(segments()[0]!, 'utf8').trimEnd().split('\n');
    writeFileSync(path('x.ndjson'), `${lines[0]}\n`);
    const readers = [path(), path('x.ndjson')].map((target) => follow(feedLog(target)));
    await waitFor(() => readers.every(({ records }) => records.length > 0));
    writeFileSync(path('x.ndjson'), lines.map((line) => `${line}\n`).join(''));
    await write([opened(2_000), frame(2)]);
    await waitFor(() => readers.every(({ records }, n) => textsOf(records).length === 2 - n));
    for (const { records, stop } of readers) {
      expect(offsetsOf(records).slice(0, 2)).toEqual([0, 1]);
      stop();
    }
  });
});

describe('feedLog', () => {
  it.each([undefined, '', 5])('refuses %p as a path, before any I/O', (target) => {
    expect(() => feedLog(target as string)).toThrow('`path`');
  });

  it.each(['', '../other', 5])('refuses %p as the name of a consumer', (name) => {
    expect(() => feedLog(path()).consume$(name as string, done)).toThrow('`name`');
  });
});

describe('consume$', () => {
  const recordsOf = (...all: LogRecord[][]) => {
    let isClosed = false;
    return {
      position: startOf('a', 1),
      end: (): ReturnType<OpenedReader['end']> => undefined,
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
    ...more,
  });

  it.each([
    [undefined, 0],
    [{ gen: 0, began: 0, offset: 3, at: 9 }, 2],
  ])('tells how far it is behind if the end is %j and its place has no time', async (end, behind) => {
    const reader = { ...recordsOf([opened(1)]), end: () => end };
    const committed$ = consume$(logOf({ openReader: () => reader }), 'db', done, {});
    expect(await lastValueFrom(committed$)).toEqual({ committed: 1, behind, behindMs: 0 });
  });

  it.each([
    ['the same', { gen: 7, began: 5, offset: 30 }, 10],
    ['a later one that began after its place', { gen: 9, began: 25, offset: 30 }, 10],
    ['a later one that began before its place', { gen: 9, began: 12, offset: 30 }, 18],
    ['a later one that has fewer records', { gen: 9, began: 12, offset: 15 }, 3],
  ])('counts what it is behind if the generation of the writer is %s', async (_, end, behind) => {
    const position = { ...startOf('a', 20, 1), gen: 7 };
    const reader = { ...recordsOf([opened(1)]), position, end: () => ({ ...end, at: 1 }) };
    expect(await lastValueFrom(consume$(logOf({ openReader: () => reader }), 'db', done, {}))).toMatchObject({
      committed: 20,
      behind,
    });
  });

  it('is not behind in a log whose writer file is gone', async () => {
    await write([opened(), frame(1)]);
    rmSync(path('market/writer.json'));
    expect(await firstValueFrom(feedLog(path()).consume$('any', done))).toMatchObject({ behind: 0, behindMs: 0 });
  });

  it('reads nothing if it is unsubscribed while its cursor is being opened', async () => {
    let open!: (cursor: Awaited<ReturnType<ReadableLog['openCursor']>>) => void;
    const log = logOf({ openCursor: () => new Promise((resolve) => (open = resolve)) });
    const work = jest.fn(done);
    consume$(log, 'db', work, {}).subscribe().unsubscribe();
    await new Promise<void>((resolve) => open({ position: undefined, commit: done, close: resolve }));
    expect(work).not.toHaveBeenCalled();
  });

  it('commits no batch after one that has failed, and reports the failure once the others are finished', async () => {
    const log = feedLog(path());
    await write(frames(0, 50));
    const begun: { readonly end: () => void; readonly fail: (error: Error) => void }[] = [];
    const work = () => new Promise<void>((end, fail) => begun.push({ end, fail }));
    const committed: number[] = [];
    const errors: Error[] = [];
    log
      .consume$('db', work, { maxBatch: 5, maxInFlight: 3 })
      .subscribe({ next: (each) => committed.push(each.committed), error: (error: Error) => errors.push(error) });
    await waitFor(() => begun.length === 3);
    begun[2]!.end();
    begun[0]!.end();
    await waitFor(() => committed.length === 1);
    begun[1]!.fail(new Error('killed'));
    await waitFor(() => begun.length > 3);
    expect(errors).toEqual([]);
    for (const { end } of begun) end();
    await waitFor(() => errors.length > 0);
    expect(errors[0]!.message).toBe('killed');
    expect(committed).toEqual([5]);
    expect(await log.committed('db')).toMatchObject({ offset: 5, frames: 5, at: 1_004 });
  });

  it('works on all records if it should error where some are missing, and none is', async () => {
    await write([opened(), frame(1)]);
    const committed$ = feedLog(path()).consume$('db', done, { onLoss: 'error' });
    expect(await lastValueFrom(committed$.pipe(take(1)))).toMatchObject({ committed: 2 });
  });

  it('needs a folder for its cursor', async () => {
    writeFileSync(path('x.ndjson'), '');
    const consumed = lastValueFrom(feedLog(path('x.ndjson')).consume$('db', done));
    await expect(consumed).rejects.toMatchObject({ code: 'log-write-failed' });
  });
});

describe('a feed that settles', () => {
  it('has the gap of a new writer when its connection is complete, also without a frame', async () => {
    const begin = Date.now();
    await write([opened(begin - 900), frame(1, begin - 800)]);
    const writer = startWriter(feedLog(path()));
    const reader = follow(feedLog(path()));
    const again = { ...opened(begin), connection: 2 };
    writer.send(again);
    await waitFor(() => reader.records.some(({ type }) => type === 'gap'));
    writer.send(frame(2, Date.now()));
    await writer.end();
    reader.stop();
    expect(gapsOf(await read())).toMatchObject([
      { from: begin - 800, to: begin + 500, failure: { code: 'log-paused' } },
    ]);
  });

  it('has the outage for who begins to read meanwhile', async () => {
    const gap = gapOf(1_010, 1_520);
    const events = [opened(), frame(1), disconnected(1_010), { ...opened(1_020), connection: 2 }, gap, frame(2, 1_530)];
    await write(events);
    const records = await read({ from: { offset: 4 } });
    expect(short(records)).toEqual([
      ...['-:disconnected connection-lost', '-:opened', '4:gap connection-lost', '5:{"n":2}'],
    ]);
    expect(records[1]).not.toHaveProperty('completeFrom');
    expect((await read({ from: { offset: 5 } }))[0]).toMatchObject({ type: 'opened', at: 1_520, completeFrom: 1_520 });
  });
});
