import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  concat,
  from,
  lastValueFrom,
  map,
  of,
  type Observable,
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

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'feed-log-'));
});
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const frame = (n: number, at = 1_000 + n * 10) => new Frame('market', Buffer.from(`{"n":${n}}`), false, at, 1);
const opened = (at = 1_000) => ({ type: 'opened', at, feed: 'market', connection: 1 }) as const;
const numbered = (count: number) => Array.from({ length: count }, (_, n) => frame(n));
const all = (path = folder, options = {}): Promise<LogRecord[]> =>
  lastValueFrom(
    feedLog(path)
      .read$({ follow: false, ...options })
      .pipe(toArray()),
  );
const logId = () => (JSON.parse(readFileSync(join(folder, 'writer.json'), 'utf8')) as { readonly log: string }).log;
const texts = (records: readonly LogRecord[]) =>
  records.flatMap((record) => (record.type === 'frame' ? [record.text()] : []));

describe('append', () => {
  it('records every frame beside another operator on a shared feed, and after a new subscription', async () => {
    const source = new Subject<unknown>();
    const feed = source.pipe(share());
    const other: unknown[] = [];
    feed.subscribe((event) => other.push(event));
    const log = feedLog(folder);
    const first = feed.pipe(log.append()).subscribe();
    source.next(opened());
    for (const each of numbered(50)) source.next(each);
    first.unsubscribe();
    const second = feed.pipe(log.append()).subscribe();
    for (const each of numbered(20)) source.next(each);
    second.unsubscribe();
    const records = await all();
    expect(texts(records)).toEqual([...numbered(50), ...numbered(20)].map((each) => each.text()));
    expect(records.filter(({ type }) => type === 'gap')).toHaveLength(1);
    expect(other).toHaveLength(71);
  });

  it("forwards everything unchanged, even what it doesn't write", async () => {
    const values = [opened(), frame(1), 7, { type: 'watermark', at: 2_000 }, 'text'];
    const forwarded = await lastValueFrom(from(values).pipe(feedLog(folder).append(), toArray()));
    expect(forwarded).toEqual(values);
    expect((await all()).map(({ type }) => type)).toEqual(['opened', 'frame']);
  });

  it('writes a frame of 16 MiB and the frames around it', async () => {
    const large = new Frame('market', Buffer.alloc(16 * 1024 * 1024, '"'), false, 1_005, 1);
    await lastValueFrom(from([frame(0), large, frame(1)]).pipe(feedLog(folder).append()));
    const records = (await all()) as Frame[];
    expect(records.map(({ byteLength }) => byteLength)).toEqual([7, 16 * 1024 * 1024, 7]);
    expect(records[1]!.data.equals(large.data)).toBe(true);
  });

  it('stops with the source, and says so', async () => {
    const failing = concat(of(opened(), frame(1)), new Promise<never>((_, fail) => fail(new Error('over'))));
    await expect(lastValueFrom(failing.pipe(feedLog(folder).append()))).rejects.toThrow('over');
    expect((await all()).map(({ type }) => type)).toEqual(['opened', 'frame', 'stopped']);
  });
});

describe('retention', () => {
  const names = () => readdirSync(folder).filter((name) => name.includes('ndjson'));
  const append = (options = {}) =>
    lastValueFrom(from([opened(), ...numbered(100)]).pipe(feedLog(folder).append({ segmentBytes: 2_000, ...options })));

  it('removes segments by age, but none because the clock was set back', async () => {
    await append();
    const before = names();
    expect(before.length).toBeGreaterThan(5);
    const hourAgo = Date.now() / 1_000 - 3_600;
    for (const name of before.slice(0, 3)) utimesSync(join(folder, name), hourAgo, hourAgo);
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
    jest.spyOn(Date, 'now').mockImplementation(() => time);
    const source = new Subject<Frame>();
    const done = lastValueFrom(source.pipe(feedLog(folder).append({ maxAgeMs: 80_000 })));
    for (const [n, step] of [0, 5_000, 6_000, -60_000, 1_000].entries()) {
      time += step;
      source.next(frame(n));
      await waitFor(async () => texts(await all()).length === n + 1);
    }
    source.complete();
    await done;
    expect(names()).toHaveLength(3);
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
    tumbling: (events: Observable<unknown>) => events.pipe(tumblingWindow({ lengthMs: 100 })),
    sliding: (events: Observable<unknown>) => events.pipe(slidingWindow({ lengthMs: 200, everyMs: 50 })),
    'tumbling, by key': (events: Observable<unknown>) =>
      events.pipe(tumblingWindow({ lengthMs: 100, by: key } as never)),
  };
  const shown = (events: Observable<unknown>, name: string) =>
    lastValueFrom(
      windows[name]!(events).pipe(
        map((each) =>
          JSON.stringify(each, (field, value: unknown) =>
            field === 'offset' || field === 'position' ? undefined : value,
          ),
        ),
        toArray(),
      ),
    );

  it.each(Object.keys(windows))('equal those of the live feed: %s', async (name) => {
    const source = from(live).pipe(feedLog(folder).append({ segmentBytes: 500 }));
    const expected = await shown(source, name);
    expect(expected.length).toBeGreaterThan(5);
    expect(await shown(feedLog(folder).read$({ follow: false }), name)).toEqual(expected);
    const scheduler = new VirtualTimeScheduler();
    let isDone = false;
    const fast = shown(feedLog(folder).read$({ follow: false, speed: 10, scheduler }), name).finally(
      () => (isDone = true),
    );
    await waitFor(() => {
      scheduler.flush();
      return isDone;
    });
    expect(await fast).toEqual(expected);
  });

  it('are incomplete over a gap of the log itself', async () => {
    await lastValueFrom(from([opened(1_000), ...numbered(30)]).pipe(feedLog(folder).append()));
    const later = Array.from({ length: 30 }, (_, n) => frame(n, 2_000 + n * 10));
    await lastValueFrom(from([opened(2_000), ...later]).pipe(feedLog(folder).append()));
    const seen = await lastValueFrom(
      feedLog(folder)
        .read$({ follow: false })
        .pipe(tumblingWindow({ lengthMs: 100 }), toArray()),
    );
    const incomplete = seen.filter(({ complete }) => !complete).map(({ start }) => start);
    expect(incomplete[0]).toBe(1_200);
    expect(seen.filter(({ complete }) => complete).length).toBeGreaterThan(3);
  });
});

describe('speed', () => {
  it('waits between records as recorded, divided by the speed, but not if the clock was set back', async () => {
    const times = [1_000, 1_100, 1_300, 500, 600, 1_000];
    await lastValueFrom(from(times.map((at, n) => frame(n, at))).pipe(feedLog(folder).append()));
    const scheduler = new VirtualTimeScheduler();
    const emitted: number[] = [];
    let isDone = false;
    feedLog(folder)
      .read$({ follow: false, speed: 10, scheduler })
      .subscribe({ next: () => emitted.push(scheduler.now()), complete: () => (isDone = true) });
    await waitFor(() => {
      scheduler.flush();
      return isDone;
    });
    expect(emitted).toEqual([0, 10, 30, 30, 40, 80]);
  });
});

describe('the tip', () => {
  it("tells the time of a quiet feed, then that the writer has ended, and its status once it's back", async () => {
    const log = feedLog(folder);
    const source = new Subject<unknown>();
    const writer = source.pipe(log.append()).subscribe();
    const seen: LogRecord[] = [];
    const reader = log.read$().subscribe((record) => seen.push(record));
    const at = Date.now();
    source.next(opened(at));
    source.next(frame(1, at));
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
    const log = feedLog(folder);
    const tipAt = async () => (await inspectLog(folder)).writer?.at;
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
    const events = [opened(), ...numbered(30), gap, ...numbered(90).slice(31)];
    await lastValueFrom(from(events).pipe(feedLog(folder).append({ segmentBytes: 2_000 })));
    for (const { path, offset } of (await inspectLog(folder)).segments) if (offset < 50) rmSync(path);
    const records = await all(folder, { from: { offset: 1, frames: 0, holes: 0, log: logId() } });
    const found = records.find(({ type }) => type === 'gap') as { readonly missed?: number };
    expect(found).toMatchObject({ failure: { code: 'log-behind' } });
    // The frame 30 was never appended.
    const { n } = JSON.parse(texts(records)[0]!) as { readonly n: number };
    expect(found.missed ?? NaN).toBe(n - 1 + ofGap);
  });
});

describe('from', () => {
  it('starts from the beginning if the folder has another log, with a gap', async () => {
    await lastValueFrom(from(numbered(5)).pipe(feedLog(folder).append()));
    const records = await all(folder, { from: { offset: 3, log: 'another' } });
    expect(records[0]).toMatchObject({ type: 'gap', failure: { code: 'log-behind' } });
    expect(texts(records)).toHaveLength(5);
  });

  it('continues at the end if the position is beyond it, with a gap', async () => {
    await lastValueFrom(from(numbered(5)).pipe(feedLog(folder).append()));
    expect((await all(folder, { from: { offset: 9 } })).map(({ type }) => type)).toContain('gap');
  });
});

describe('consume$', () => {
  it('errors on a loss if it may not skip one, and stays before it', async () => {
    const log = feedLog(folder);
    await lastValueFrom(from(numbered(100)).pipe(log.append({ segmentBytes: 2_000 })));
    await lastValueFrom(log.consume$('db', () => Promise.resolve(), { maxBatch: 1 }).pipe(take(1)));
    for (const name of readdirSync(folder)
      .filter((each) => each.endsWith('ndjson'))
      .slice(0, 3))
      rmSync(join(folder, name));
    const again = (onLoss: 'gap' | 'error') =>
      lastValueFrom(log.consume$('db', () => Promise.resolve(), { onLoss, maxBatch: 10 }).pipe(take(1)));
    await expect(again('error')).rejects.toMatchObject({
      code: 'log-behind',
      message: expect.stringMatching(/\d+ frames/),
    });
    expect(await log.committed('db')).toMatchObject({ offset: 1 });
    await again('gap');
    expect((await log.committed('db'))!.offset).toBeGreaterThan(10);
  });

  it('continues after the finished batches on restart, without a hole, with three in progress', async () => {
    const log = feedLog(folder);
    await lastValueFrom(from(numbered(50)).pipe(log.append()));
    const begun: { readonly texts: readonly string[]; readonly done: () => void; readonly fail: () => void }[] = [];
    const work = (records: readonly LogRecord[]) =>
      new Promise<void>((done, fail) => {
        begun.push({ texts: texts(records), done, fail: () => fail(new Error('killed')) });
      });
    const committed: number[] = [];
    const run = () =>
      lastValueFrom(
        log.consume$('db', work, { maxBatch: 5, maxInFlight: 3 }).pipe(
          tap((each) => committed.push(each.committed)),
          takeWhile(({ behind }) => behind > 0, true),
        ),
      );
    const first = run();
    await waitFor(() => begun.length === 3);
    begun[2]!.done();
    begun[0]!.done();
    await waitFor(() => committed.length === 1);
    begun[1]!.fail();
    // Batches already in progress finish, after the hole.
    await waitFor(() => begun.length > 3);
    for (const { done } of begun.slice(3)) done();
    await expect(first).rejects.toThrow('killed');
    expect(committed).toEqual([5]);
    expect(await log.committed('db')).toMatchObject({ offset: 5 });

    const before = begun.splice(0).length;
    const second = run();
    for (let n = 0; n < 9; n += 1) {
      await waitFor(() => begun.length > n);
      begun[n]!.done();
    }
    await second;
    expect(before).toBeGreaterThan(3);
    expect(begun.flatMap((batch) => batch.texts)).toEqual(texts(numbered(50).slice(5) as never));
    expect(committed).toEqual([...committed].sort((one, other) => one - other));
    expect(await log.committed('db')).toMatchObject({ offset: 50 });
  });

  it('errors when the work throws, and repeats that batch', async () => {
    const log = feedLog(folder);
    await lastValueFrom(from(numbered(10)).pipe(log.append()));
    const fails = () => Promise.reject(new Error('database'));
    await expect(lastValueFrom(log.consume$('db', fails))).rejects.toThrow('database');
    expect(await log.committed('db')).toBeUndefined();
    const [committed] = await lastValueFrom(log.consume$('db', () => Promise.resolve()).pipe(take(1), toArray()));
    expect(committed).toMatchObject({ committed: 10, behind: 0 });
  });

  it("refuses a cursor that it can't read", async () => {
    const log = feedLog(folder);
    await lastValueFrom(from(numbered(10)).pipe(log.append()));
    await lastValueFrom(log.consume$('db', () => Promise.resolve()).pipe(take(1)));
    (await import('node:fs')).writeFileSync(join(folder, 'cursors/db.json'), 'nonsense');
    await expect(lastValueFrom(log.consume$('db', () => Promise.resolve()))).rejects.toMatchObject({
      code: 'log-corrupt',
    });
    await expect(log.committed('db')).rejects.toMatchObject({ code: 'log-corrupt' });
  });
});
