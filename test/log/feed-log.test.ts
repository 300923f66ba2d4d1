import { describe, expect, it, jest } from '@jest/globals';
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  concat,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  share,
  Subject,
  take,
  takeWhile,
  tap,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import { slidingWindow, tumblingWindow } from '../../src/index.js';
import { feedLog, inspectLog, type LogRecord } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { gapOf } from '../operators/stream.js';
import { waitFor } from '../support/wait-for.js';
import { frame, frames, numbersOf, opened, path, read, short, texts, write } from './support.js';

const names = () => readdirSync(path()).filter((name) => name.includes('ndjson'));
const done = () => Promise.resolve();

describe('append', () => {
  it('continues in a new segment, with a gap for the time between', async () => {
    await write([opened(), frame(1)]);
    await write([opened(5_000), frame(2, 5_001)]);
    expect(short(await read())).toEqual(['0:opened', '1:{"n":1}', '2:opened', '3:gap log-paused', '4:{"n":2}']);
    expect(readdirSync(path()).sort()).toEqual(['0000000000000000.ndjson', '0000000000000002.ndjson', 'writer.json']);
  });

  it('never uses an offset twice after retention removed all records and a full disk kept the next header out', async () => {
    await write(frames(0, 25));
    const [segment = ''] = names();
    rmSync(path(`market/${segment}`));
    writeFileSync(path('market/0000000000000025.ndjson'), '{"offset":25,"type');
    const tip = readFileSync(path('market/writer.json'), 'utf8');
    const atStart = { ...(JSON.parse(tip) as object), run: 0, offset: 0, closed: false };
    writeFileSync(path('market/writer.json'), JSON.stringify(atStart).padEnd(tip.length));
    await write([frame(30)]);
    const offsets = (await read()).flatMap((record) => ('offset' in record ? (record.offset ?? []) : []));
    expect(Math.min(...offsets)).toBe(1_000_000_000);
  });

  it('records every frame beside another operator on a shared feed, and after a new subscription', async () => {
    const source = new Subject<unknown>();
    const feed = source.pipe(share());
    const other: unknown[] = [];
    feed.subscribe((event) => other.push(event));
    for (const [begin, end] of [
      [0, 50],
      [50, 70],
    ] as const) {
      const subscription = feed.pipe(feedLog(path()).append()).subscribe();
      for (const each of [...(begin === 0 ? [opened()] : []), ...frames(begin, end)]) source.next(each);
      subscription.unsubscribe();
    }
    const records = await read();
    expect(numbersOf(records)).toEqual(numbersOf(frames(0, 70)));
    expect(records.filter(({ type }) => type === 'gap')).toHaveLength(1);
    expect(other).toHaveLength(71);
  });

  it("forwards everything unchanged, even what it doesn't write", async () => {
    const values = [opened(), frame(1), 7, { type: 'watermark', at: 2_000 }, 'text'];
    const forwarded = await lastValueFrom(from(values).pipe(feedLog(path()).append(), toArray()));
    expect(forwarded).toEqual(values);
    expect((await read()).map(({ type }) => type)).toEqual(['opened', 'frame']);
  });

  it('writes a frame of 16 MiB and the frames around it', async () => {
    const large = new Frame('market', Buffer.alloc(16 * 1024 * 1024, '"'), false, 1_005, 1);
    await write([frame(0), large, frame(1)]);
    const records = (await read()) as Frame[];
    expect(records.map(({ byteLength }) => byteLength)).toEqual([7, 16 * 1024 * 1024, 7]);
    expect(records[1]!.data.equals(large.data)).toBe(true);
  });

  it('stops with the source, and says so', async () => {
    const failing = concat(of(opened(), frame(1)), new Promise<never>((_, fail) => fail(new Error('over'))));
    await expect(lastValueFrom(failing.pipe(feedLog(path()).append()))).rejects.toThrow('over');
    expect((await read()).map(({ type }) => type)).toEqual(['opened', 'frame', 'stopped']);
  });

  it('refuses a second writer', async () => {
    const first = NEVER.pipe(feedLog(path()).append()).subscribe();
    await expect(write([])).rejects.toMatchObject({ code: 'log-in-use', path: path() });
    first.unsubscribe();
    await write([opened()]);
  });

  it('cuts off a torn line', async () => {
    await write([opened(), frame(1), frame(2), frame(3)]);
    const file = path('market/0000000000000000.ndjson');
    truncateSync(file, statSync(file).size - 10);
    await write([opened(2_000), frame(4, 2_001)]);
    expect(short(await read())).toEqual([
      ...['0:opened', '1:{"n":1}', '2:{"n":2}'],
      ...['3:opened', '4:gap log-paused', '5:{"n":4}'],
    ]);
  });
});

describe('retention', () => {
  const append = (options = {}) => write([opened(), ...frames(0, 100)], { segmentBytes: 2_000, ...options });

  it('removes segments by age, but none because the clock was set back', async () => {
    await append();
    const before = names();
    expect(before.length).toBeGreaterThan(5);
    const hourAgo = Date.now() / 1_000 - 3_600;
    for (const name of before.slice(0, 3)) utimesSync(join(path(), name), hourAgo, hourAgo);
    // Set it to before these segments were written.
    const now = jest.spyOn(Date, 'now').mockReturnValue((hourAgo - 60) * 1_000);
    await append({ maxAgeMs: 1_800_000 });
    expect(names()).toEqual(expect.arrayContaining([...before]));
    now.mockRestore();
    await append({ maxAgeMs: 1_800_000 });
    expect(names()).not.toContain(before[2]);
    expect(names()).toContain(before[3]);
  });

  it('begins a new segment after an eighth of the age, even if the clock was set back', async () => {
    let time = 1_000_000_000_000;
    const now = jest.spyOn(Date, 'now').mockImplementation(() => time);
    const source = new Subject<Frame>();
    const ended = lastValueFrom(source.pipe(feedLog(path()).append({ maxAgeMs: 80_000 })));
    for (const [n, step] of [0, 5_000, 6_000, -60_000, 1_000].entries()) {
      time += step;
      source.next(frame(n));
      await waitFor(async () => texts(await read()).length === n + 1);
    }
    source.complete();
    await ended;
    now.mockRestore();
    expect(names()).toHaveLength(3);
  });

  it('keeps the newest segments, and tells a reader that some are gone', async () => {
    await append();
    await append({ maxBytes: 8_000 });
    const all = short(await read({ from: { offset: 2 } }));
    expect(all.slice(0, 2)).toEqual(['-:opened', expect.stringMatching(/^-:gap log-behind/)]);
    expect(all.at(-1)).toMatch(/:{"n":99}$/);
  });

  it('compresses closed segments, which still read the same', async () => {
    const source = new Subject<unknown>();
    const writer = source.pipe(feedLog(path()).append({ segmentBytes: 4_000, compress: true })).subscribe();
    for (const event of [opened(), ...frames(0, 100)]) source.next(event);
    await waitFor(() => names().filter((name) => name.endsWith('.gz')).length > 2);
    writer.unsubscribe();
    expect(numbersOf(await read())).toEqual(numbersOf(frames(0, 100)));
  });
});

describe('windows over a log', () => {
  // The source emits its time, so windows over the live feed don't depend on the clock.
  const live = [
    opened(1_000),
    ...[0, 3, 7, 12, 13, 20].map((n) => frame(n)),
    { type: 'watermark', at: 1_210 } as const,
    ...[22, 25, 31, 44, 45, 60, 61].map((n) => frame(n)),
    { type: 'watermark', at: 1_620 } as const,
  ];
  const key = (each: unknown) => Number((each as Frame).text().replace(/\D/g, '')) % 2;
  const windows: Readonly<Record<string, (events: Observable<unknown>) => Observable<unknown>>> = {
    tumbling: (events) => events.pipe(tumblingWindow({ lengthMs: 100 })),
    sliding: (events) => events.pipe(slidingWindow({ lengthMs: 200, everyMs: 50 })),
    'tumbling, by key': (events) => events.pipe(tumblingWindow({ lengthMs: 100, by: key } as never)),
  };
  const withoutPlace = (field: string, value: unknown) =>
    field === 'offset' || field === 'position' ? undefined : value;
  const shown = (events: Observable<unknown>, name: string) =>
    lastValueFrom(
      windows[name]!(events).pipe(
        map((each) => JSON.stringify(each, withoutPlace)),
        toArray(),
      ),
    );

  it.each(Object.keys(windows))('equal those of the live feed: %s', async (name) => {
    const expected = await shown(from(live).pipe(feedLog(path()).append({ segmentBytes: 500 })), name);
    expect(expected.length).toBeGreaterThan(5);
    expect(await shown(feedLog(path()).read$({ follow: false }), name)).toEqual(expected);
    const scheduler = new VirtualTimeScheduler();
    let isDone = false;
    const fast = shown(feedLog(path()).read$({ follow: false, speed: 10, scheduler }), name).finally(
      () => (isDone = true),
    );
    await waitFor(() => {
      scheduler.flush();
      return isDone;
    });
    expect(await fast).toEqual(expected);
  });

  it('are incomplete over a gap of the log itself', async () => {
    await write([opened(1_000), ...frames(0, 30)]);
    await write([opened(2_000), ...Array.from({ length: 30 }, (_, n) => frame(n, 2_000 + n * 10))]);
    const seen = await lastValueFrom(
      feedLog(path())
        .read$({ follow: false })
        .pipe(tumblingWindow({ lengthMs: 100 }), toArray()),
    );
    const incomplete = seen.filter(({ complete }) => !complete).map(({ start }) => start);
    expect(incomplete[0]).toBe(1_200);
    expect(seen.filter(({ complete }) => complete).length).toBeGreaterThan(3);
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

describe('the tip', () => {
  it("tells the time of a quiet feed, then that the writer has ended, and its status once it's back", async () => {
    const log = feedLog(path());
    const source = new Subject<unknown>();
    const writer = source.pipe(log.append()).subscribe();
    const seen: LogRecord[] = [];
    const reader = log.read$().subscribe((record) => seen.push(record));
    source.next(opened(Date.now()));
    source.next(frame(1, Date.now()));
    await waitFor(() => seen.filter(({ type }) => type === 'watermark').length > 1);
    writer.unsubscribe();
    const code = (record: LogRecord | undefined) => (record?.type === 'disconnected' ? record.failure.code : '');
    await waitFor(() => code(seen.at(-1)) === 'log-writer-gone');
    const length = seen.length;
    const next = source.pipe(log.append()).subscribe();
    source.next(opened(Date.now()));
    source.next(frame(2, Date.now()));
    await waitFor(() => texts(seen).length === 2);
    expect(seen.slice(length).map(({ type }) => type)).toEqual(expect.arrayContaining(['opened', 'gap', 'frame']));
    next.unsubscribe();
    reader.unsubscribe();
  });

  it('tells no time before its source does, which may be late', async () => {
    const source = new Subject<unknown>();
    const log = feedLog(path());
    const tipAt = async () => (await inspectLog(path())).writer?.at;
    let writer = source.pipe(log.append()).subscribe();
    expect(await tipAt()).toBe(0);
    source.next(opened(1_000));
    source.next(frame(0));
    writer.unsubscribe();
    const seen: LogRecord[] = [];
    const reader = log.read$().subscribe((record) => seen.push(record));
    writer = source.pipe(log.append()).subscribe();
    expect(await tipAt()).toBe(1_000);
    await waitFor(() => seen.some(({ type }) => type === 'watermark'));
    source.next(opened(1_500));
    source.next(frame(60));
    await waitFor(() => texts(seen).length === 2);
    for (const record of seen.slice(0, -1))
      if (record.type === 'watermark') expect(record.at).toBeLessThanOrEqual(1_600);
    writer.unsubscribe();
    reader.unsubscribe();
  });
});

describe('the number of a gap in place of records that are gone', () => {
  it.each([
    ['counts frames, and those that their gaps count', { missed: 7 }, 7],
    ['is missing if one of their gaps has none', {}, NaN],
  ])('%s', async (_what, missed, ofGap) => {
    const gap = { ...gapOf(1_300, 1_310), ...missed };
    await write([opened(), ...frames(0, 30), gap, ...frames(31, 90)], { segmentBytes: 2_000 });
    for (const { path: file, offset } of (await inspectLog(path())).segments) if (offset < 50) rmSync(file);
    const { log } = JSON.parse(readFileSync(path('market/writer.json'), 'utf8')) as { readonly log: string };
    const records = await read({ from: { offset: 1, frames: 0, holes: 0, log } });
    const found = records.find(({ type }) => type === 'gap') as { readonly missed?: number };
    expect(found).toMatchObject({ failure: { code: 'log-behind' } });
    // The frame 30 was never appended.
    expect(found.missed ?? NaN).toBe(numbersOf(records)[0]! - 1 + ofGap);
  });
});

describe('a reader', () => {
  it('begins at an offset or a time in any segment', async () => {
    await write([opened(), ...frames(1, 501)], { segmentBytes: 4_000 });
    expect(names().length).toBeGreaterThan(10);
    expect((await read()).map((record) => (record as { offset: number }).offset)).toEqual([...Array(501).keys()]);
    for (const place of [{ offset: 400 }, { time: 5_000 }])
      expect(short(await read({ from: place })).slice(0, 2)).toEqual(['-:opened', '400:{"n":400}']);
  });

  it('follows the log while it grows, from any place', async () => {
    const source = new Subject<unknown>();
    const writer = source.pipe(feedLog(path()).append()).subscribe();
    const seen: LogRecord[] = [];
    const reader = feedLog(path())
      .read$()
      .subscribe((record) => seen.push(record));
    source.next(opened());
    for (let n = 0; n < 100; n += 1) {
      source.next(frame(n));
      if (n % 10 === 0) await new Promise((next) => setImmediate(next));
    }
    await firstValueFrom(feedLog(path()).read$({ from: { offset: 100 } }));
    await waitFor(() => texts(seen).length === 100);
    expect(numbersOf(seen)).toEqual(numbersOf(frames(0, 100)));
    reader.unsubscribe();
    writer.unsubscribe();
  });

  it('starts from the beginning if the folder has another log, with a gap', async () => {
    await write(frames(0, 5));
    const records = await read({ from: { offset: 3, log: 'another' } });
    expect(records[0]).toMatchObject({ type: 'gap', failure: { code: 'log-behind' } });
    expect(texts(records)).toHaveLength(5);
  });

  it('continues at the end if the position is beyond it, with a gap', async () => {
    await write(frames(0, 5));
    expect((await read({ from: { offset: 9 } })).map(({ type }) => type)).toContain('gap');
  });
});

describe('consume$', () => {
  it('errors on a loss if it may not skip one, and stays before it', async () => {
    const log = feedLog(path());
    await write(frames(0, 100), { segmentBytes: 2_000 });
    await lastValueFrom(log.consume$('db', done, { maxBatch: 1 }).pipe(take(1)));
    for (const name of names().slice(0, 3)) rmSync(join(path(), name));
    const again = (onLoss: 'gap' | 'error') =>
      lastValueFrom(log.consume$('db', done, { onLoss, maxBatch: 10 }).pipe(take(1)));
    await expect(again('error')).rejects.toMatchObject({
      code: 'log-behind',
      message: expect.stringMatching(/\d+ frames/),
    });
    expect(await log.committed('db')).toMatchObject({ offset: 1 });
    await again('gap');
    expect((await log.committed('db'))!.offset).toBeGreaterThan(10);
  });

  it('continues after the finished batches on restart, without a hole, with three in progress', async () => {
    const log = feedLog(path());
    await write(frames(0, 50));
    const begun: { readonly numbers: readonly number[]; readonly done: () => void; readonly fail: () => void }[] = [];
    const work = (records: readonly LogRecord[]) =>
      new Promise<void>((end, fail) => {
        begun.push({ numbers: numbersOf(records), done: end, fail: () => fail(new Error('killed')) });
      });
    const committed: number[] = [];
    const run = () =>
      lastValueFrom(
        log.consume$('db', work, { maxBatch: 5, maxInFlight: 3 }).pipe(
          tap((each) => committed.push(each.committed)),
          takeWhile(({ behind }) => behind > 0, true),
        ),
      );
    expect(await log.committed('db')).toBeUndefined();
    const first = run();
    await waitFor(() => begun.length === 3);
    begun[2]!.done();
    begun[0]!.done();
    await waitFor(() => committed.length === 1);
    begun[1]!.fail();
    // Batches already in progress finish, after the hole.
    await waitFor(() => begun.length > 3);
    for (const batch of begun.slice(3)) batch.done();
    await expect(first).rejects.toThrow('killed');
    expect(committed).toEqual([5]);
    expect(await log.committed('db')).toMatchObject({ offset: 5, frames: 5, at: 1_040 });

    const before = begun.splice(0).length;
    const second = run();
    for (let n = 0; n < 9; n += 1) {
      await waitFor(() => begun.length > n);
      begun[n]!.done();
    }
    await second;
    expect(before).toBeGreaterThan(3);
    expect(begun.flatMap((batch) => batch.numbers)).toEqual(numbersOf(frames(5, 50)));
    expect(committed).toEqual([...committed].sort((one, other) => one - other));
    expect(await log.committed('db')).toMatchObject({ offset: 50 });
  });

  it('errors when the work throws, and repeats that batch', async () => {
    const log = feedLog(path());
    await write(frames(0, 10));
    const fails = () => Promise.reject(new Error('database'));
    await expect(lastValueFrom(log.consume$('db', fails))).rejects.toThrow('database');
    expect(await log.committed('db')).toBeUndefined();
    expect(await firstValueFrom(log.consume$('db', done))).toMatchObject({ committed: 10, behind: 0 });
  });

  it("refuses a cursor that it can't read", async () => {
    const log = feedLog(path());
    await write(frames(0, 10));
    await firstValueFrom(log.consume$('db', done));
    writeFileSync(path('market/cursors/db.json'), 'nonsense');
    await expect(firstValueFrom(log.consume$('db', done))).rejects.toMatchObject({ code: 'log-corrupt' });
    await expect(log.committed('db')).rejects.toMatchObject({ code: 'log-corrupt' });
  });
});
