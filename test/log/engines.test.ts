/** @lane brokers */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { concat, from, lastValueFrom, Subject, take, throwError, toArray } from 'rxjs';
import { feedLog, type FeedLog, type FeedLogOptions, type LogRecord } from '../../src/log/index.js';
import type { Place } from '../../src/protocol/place.js';
import { memoryEngine } from '../../src/cluster/index.js';
import { engineLog } from '../../src/log/engine-log.js';
import { awayMs } from '../../src/log/stored-log.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { redisLog } from '../../src/redis/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { itInCi } from '../support/cases.js';
import { waitFor } from '../support/wait-for.js';
import { all, append, done, follow, frame, frames, offsetsOf, opened, path } from './support.js';
import { short, startWriter, texts, textsOf } from './support.js';

type Limits = Pick<FeedLogOptions, 'maxBytes'>;
/**
 * What every log does.
 *
 * @param test - defines a test
 * @param open - returns a new log, opened twice: to write with limits, and with the defaults
 */
const isALog = (test: typeof itInCi, open: (options: Limits) => readonly FeedLog[]): void => {
  const twice = (options: Limits = {}) => open(options) as readonly [FeedLog, FeedLog];

  /** Appends frames in several writes: a reader has received each of them before the next one. */
  const appendInParts = async (log: FeedLog, count: number, step: number) => {
    const { send, end } = startWriter(log);
    const reader = follow(log);
    send(opened());
    for (let n = 1; n <= count; n += step) {
      send(...frames(n, n + step));
      await waitFor(() => textsOf(reader.records).at(-1) === `{"n":${n + step - 1}}`);
    }
    await end();
    reader.stop();
    return reader.records;
  };

  test('forwards everything unchanged, writes frames and events with offsets, and continues after a gap', async () => {
    const [log, other] = twice();
    // What the engine of a cluster refuses has the time of a clock, and the feed may be far behind it.
    const refused = { type: 'engine-refused', at: 4_000 };
    const events = [opened(), frame(1), 7, refused, { type: 'watermark', at: 1_001 }, frame(2)];
    expect(await append(log, events)).toEqual(events);
    await append(other, [opened(5_000), frame(3, 5_001)]);
    const expected = ['0:opened', '1:{"n":1}', '2:{"n":2}', '3:opened', '4:gap log-paused', '5:{"n":3}'];
    for (const each of [log, other]) expect(short(await all(each))).toEqual(expected);
  });

  test('can be read from an offset, from a time and from the end, and each offset has one content', async () => {
    const [log, other] = twice();
    await appendInParts(log, 300, 30);
    const records = await all(other);
    expect(records).toHaveLength(301);
    expect(offsetsOf(records)).toEqual([...Array(301).keys()]);
    for (const [place, first] of [
      [{ offset: 200 }, 200],
      [{ time: 1_133 }, 133],
      [{ time: 0 }, 0],
      [(records[149] as never as { position: Place }).position, 150],
    ] as const) {
      const found = await all(log, { from: place });
      expect(found[0]).toMatchObject({ type: 'opened' });
      expect(found.filter((record) => offsetsOf([record]).length > 0)).toEqual(records.slice(first));
    }
    // A reader lacks the frames before its time, also those of the ms of the last record that it skips.
    expect((await all(log, { from: { time: 1_133 } }))[0]).toMatchObject({ type: 'opened', at: 1_133 });
    expect(textsOf(await all(log, { from: { time: 9_999 } }))).toEqual([]);
    expect(short(await all(log, { from: 'latest' }))).toEqual(['-:opened']);
  });

  test('is followed live without a seam by readers that begin at any time', async () => {
    const [log, other] = twice();
    const { send, end } = startWriter(log);
    const readers = [follow(other)];
    send(opened());
    for (let n = 1; n <= 500; n += 20) {
      send(...frames(n, n + 20));
      if (n % 100 === 1) readers.push(follow(n % 200 === 1 ? log : other));
      await waitFor(() => textsOf(readers[0]!.records).length > n - 40);
    }
    for (const { records, stop } of readers) {
      await waitFor(() => textsOf(records).length === 500);
      stop();
      expect(textsOf(records)).toEqual(texts(1, 501));
      expect(records.filter(({ type }) => type === 'gap')).toEqual([]);
    }
    await end();
  });

  test('tells the time while the market is quiet, that its writer has ended, and the status of the next one', async () => {
    const [log, other] = twice();
    const now = Date.now();
    const { send, end } = startWriter(log);
    const { records, stop } = follow(other);
    send(opened(now), frame(1, now));
    await waitFor(() => records.some((record) => record.type === 'watermark' && record.at > now));
    await end();
    await waitFor(() => records.at(-1)?.type === 'disconnected');
    expect(short(records).slice(-2)).toEqual(['1:{"n":1}', '-:disconnected log-writer-gone']);
    const { length } = short(records);
    await append(log, [opened(now + 9), frame(2, now + 9)]);
    await waitFor(() => textsOf(records).length === 2);
    expect(short(records).slice(length)).toEqual(expect.arrayContaining(['2:opened', '3:gap log-paused', '4:{"n":2}']));
    stop();
  });

  test('continues at once after a writer whose subscriber has left', async () => {
    const [log, other] = twice();
    const source = new Subject<unknown>();
    const subscription = source.pipe(log.append()).subscribe();
    await waitFor(() => source.observed);
    for (const event of [opened(), frame(1), frame(2)]) source.next(event);
    subscription.unsubscribe();
    await append(log, [opened(5_000), frame(3, 5_001)]);
    const expected = ['0:opened', '1:{"n":1}', '2:{"n":2}', '3:opened', '4:gap log-paused', '5:{"n":3}'];
    expect(short(await all(other))).toEqual(expected);
  });

  test('refuses a second writer while the first one is there', async () => {
    const [log, other] = twice();
    const { send, end } = startWriter(log);
    const reader = follow(other);
    send(opened(), frame(1));
    await waitFor(() => textsOf(reader.records).length === 1);
    await expect(append(other, [])).rejects.toMatchObject({ code: 'log-in-use' });
    reader.stop();
    await end();
    await append(other, [opened(2_000)]);
  });

  test('stops with its source, and says so', async () => {
    const [log] = twice();
    const failing = concat(
      from([opened(), frame(1)]),
      throwError(() => new Error('over')),
    );
    await expect(lastValueFrom(failing.pipe(log.append()))).rejects.toThrow('over');
    expect((await all(log)).map(({ type }) => type)).toEqual(['opened', 'frame', 'stopped']);
  });

  test('completes what is appended when it is closed, once the last records are stored', async () => {
    const [log, other] = twice();
    const source = new Subject<unknown>();
    let isOver = false;
    source.pipe(log.append()).subscribe({ complete: () => (isOver = true) });
    await waitFor(() => source.observed);
    for (const event of [opened(), ...frames(1, 101)]) source.next(event);
    await log.close();
    expect(isOver).toBe(true);
    expect(textsOf(await all(other))).toEqual(texts(1, 101));
  });

  test('replaces the records that retention has removed by a gap with their number, which a strict consumer never passes', async () => {
    const [log, other] = twice({ maxBytes: 20_000 });
    await appendInParts(log, 1_000, 20);
    const [status, gap, ...rest] = await all(other, { from: { offset: 0, frames: 0, holes: 0 } });
    expect(status).toMatchObject({ type: 'opened' });
    const { missed = 0 } = gap as { readonly missed?: number };
    expect(missed).toBeGreaterThan(500);
    expect(gap).toMatchObject({ type: 'gap', failure: { code: 'log-behind' } });
    expect(textsOf(rest)).toEqual(texts(missed + 1, 1_001));
    const strict = { onLoss: 'error', from: { offset: 0, frames: 0, holes: 0 } } as const;
    await expect(lastValueFrom(other.consume$('db', done, strict))).rejects.toMatchObject({
      ...{ code: 'log-behind', message: expect.stringContaining(`${missed} frames`) },
    });
    expect(await other.committed('db')).toBeUndefined();
    const unknown = lastValueFrom(other.consume$('db', done, { ...strict, from: { offset: 0 } }));
    await expect(unknown).rejects.toThrow('an unknown number of frames are gone');
    const { committed } = await lastValueFrom(other.consume$('db', done, { from: { offset: 0 } }).pipe(take(1)));
    expect(committed).toBeGreaterThan(500);
  });

  test('has a consumer that continues where it was, and stays at work that fails', async () => {
    const [log, other] = twice();
    // Not in small segments: a batch ends with its segment.
    await append(other, [opened(), ...frames(1, 101)]);
    const seen: LogRecord[] = [];
    const work = (records: readonly LogRecord[]) => Promise.resolve(seen.push(...records));
    expect(await log.committed('db')).toBeUndefined();
    await lastValueFrom(log.consume$('db', work, { maxBatch: 10 }).pipe(take(3)));
    expect(await other.committed('db')).toMatchObject({ offset: 30, frames: 29, at: 1_029 });
    let calls = 0;
    const failing = () => ((calls += 1) === 2 ? Promise.reject(new Error('no')) : Promise.resolve());
    await expect(lastValueFrom(other.consume$('db', failing, { maxBatch: 10 }))).rejects.toThrow('no');
    expect(await log.committed('db')).toMatchObject({ offset: 39 });
    const committed = await lastValueFrom(
      other.consume$('db', work, { maxBatch: 7, maxInFlight: 3 }).pipe(take(9), toArray()),
    );
    expect(committed.at(-1)).toMatchObject({ committed: 101, behind: 0 });
    expect(committed[0]!.behind).toBeGreaterThan(0);
    expect(textsOf(seen)).toEqual([...texts(1, 30), ...texts(39, 101)]);
  });

  test('has one process for each consumer', async () => {
    const [log, other] = twice();
    await append(log, [opened(), frame(1)]);
    const running = log.consume$('db', done).subscribe();
    await waitFor(async () => (await other.committed('db'))?.offset === 2);
    const first = (name: string) => lastValueFrom(other.consume$(name, done).pipe(take(1)));
    await expect(first('db')).rejects.toMatchObject({ code: 'consumer-in-use' });
    await first('mail');
    running.unsubscribe();
    await append(log, [opened(2_000)]);
    await waitFor(() =>
      first('db').then(
        ({ committed }) => committed > 2,
        () => false,
      ),
    );
  });

  test('has frames that are larger than a message of NATS', async () => {
    const [log, other] = twice();
    const large = new Frame('market', Buffer.alloc(3 * 1024 * 1024, '"'), false, 1_001, 1);
    const reader = follow(other);
    await append(log, [opened(), frame(1), large, frame(2)]);
    await waitFor(() => textsOf(reader.records).length === 3);
    reader.stop();
    for (const records of [reader.records, await all(log)]) {
      const found = records.filter((record): record is typeof record & Frame => record.type === 'frame');
      expect(found.map(({ byteLength }) => byteLength)).toEqual([7, 3 * 1024 * 1024, 7]);
      expect(found[1]!.data.equals(large.data)).toBe(true);
    }
    expect(textsOf(await all(log, { from: { offset: 3 } }))).toEqual(['{"n":2}']);
    expect(textsOf(await all(log, { from: 'latest' }))).toEqual([]);
  });
};

describe('a log in a folder', () => {
  isALog(it, (limits) => [feedLog(path(), { segmentBytes: 4_000, ...limits }), feedLog(path())]);
});

describeInstalled('nats', 'a log on JetStream', () => {
  let server: RealServer;
  beforeAll(async () => {
    server = await startServer('nats');
    connections = [await server.nats(), await server.nats()];
  });
  afterAll(() => server.stop());
  let connections: Awaited<ReturnType<RealServer['nats']>>[];

  isALog(itInCi, (limits) => {
    const name = randomUUID();
    return connections.map((connection) => jetStreamLog(connection, { name, ...limits }));
  });
});

describeInstalled('redis', 'a log on Redis', () => {
  let server: RealServer;
  beforeAll(async () => {
    server = await startServer('redis');
    connections = [server.redis(), server.redis()];
  });
  afterAll(() => server.stop());
  let connections: ReturnType<RealServer['redis']>[];

  isALog(itInCi, (limits) => {
    const name = randomUUID();
    return connections.map((connection) => redisLog(connection, { name, ...limits }));
  });
});

describe('a log in memory', () => {
  isALog(it, (limits) => {
    const engine = memoryEngine();
    const broker = { engine, connection: engine, isClosed: () => false };
    const parts = { ...broker, isAway: () => false, cursorKey: (consumer: string) => consumer };
    return [1, 2].map(() => engineLog({ ...parts, path: randomUUID() }, { name: 'market', ...limits }));
  });

  it('never waits for what only the log itself refuses, whatever counts as an outage of its engine', async () => {
    const engine = memoryEngine();
    const broker = { engine, connection: engine, isClosed: () => false };
    const parts = { ...broker, isAway: () => true, cursorKey: (consumer: string) => consumer, path: randomUUID() };
    const log = engineLog(parts, { name: 'market' });
    await engine.compareAndSet('db', 'not a cursor', undefined);
    await expect(lastValueFrom(log.consume$('db', done))).rejects.toMatchObject({ code: 'log-corrupt' });
    const startedAt = performance.now();
    await expect(all(log)).rejects.toMatchObject({ code: 'log-missing' });
    expect(performance.now() - startedAt).toBeLessThan(awayMs);
  });
});
