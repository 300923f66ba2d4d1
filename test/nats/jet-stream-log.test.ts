import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concat, from, lastValueFrom, Subject, take, throwError, toArray } from 'rxjs';
import { feedLog, type FeedLog, type LogError, type LogRecord } from '../../src/log/index.js';
import { headerLine } from '../../src/log/lines.js';
import { jetStreamLog, type JetStreamLogOptions } from '../../src/nats/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { waitFor } from '../support/wait-for.js';

const frame = (n: number, at = 1_000 + n) => new Frame('market', Buffer.from(`{"n":${n}}`), false, at, 1);
const opened = (at = 1_000) => ({ type: 'opened', at, feed: 'market', connection: 1 }) as const;
const frames = (count: number, first = 1) => Array.from({ length: count }, (_, n) => frame(first + n));

const append = (log: FeedLog, events: readonly unknown[], options = {}) =>
  lastValueFrom(from(events).pipe(log.append(options), toArray()));
const all = (log: FeedLog, options = {}): Promise<LogRecord[]> =>
  lastValueFrom(log.read$({ follow: false, ...options }).pipe(toArray()));
const short = (records: readonly LogRecord[]) =>
  records
    .filter(({ type }) => type !== 'watermark')
    .map((record) => {
      const { offset = '-' } = record as { readonly offset?: number };
      if (record.type === 'frame') return `${offset}:${record.text().slice(0, 20)}`;
      const { failure, missed = '' } = record as { failure?: { readonly code: string }; missed?: number };
      return [`${offset}:${record.type}`, failure?.code, missed].join(' ').trim();
    });
const texts = (count: number, first = 1) => frames(count, first).map((each) => each.text());
/** What is in a log; nothing before its first writer has created it. */
const soFar = (log: FeedLog, options = {}) => all(log, options).catch(() => []);
const textsOf = (records: readonly LogRecord[]) =>
  records.flatMap((record) => (record.type === 'frame' ? [record.text()] : []));

/** A reader that follows. */
const follow = (log: FeedLog, options = {}) => {
  const records: LogRecord[] = [];
  const errors: unknown[] = [];
  const subscription = log.read$(options).subscribe({
    next: (record) => records.push(record),
    error: (error) => errors.push(error),
  });
  return { records, errors, stop: () => subscription.unsubscribe() };
};

/** A writer whose source stays open. */
const write = (log: FeedLog, options = {}) => {
  const source = new Subject<unknown>();
  const errors: LogError[] = [];
  const done = new Promise<void>((resolve) => {
    source.pipe(log.append(options)).subscribe({
      error: (error: LogError) => {
        errors.push(error);
        resolve();
      },
      complete: resolve,
    });
  });
  const send = (...events: readonly unknown[]) => events.forEach((event) => source.next(event));
  const end = async () => {
    source.complete();
    await done;
  };
  return { send, errors, end };
};

describeInstalled('nats', 'a log', () => {
  let server: RealServer;
  let connections: readonly [NatsConnection, NatsConnection];
  const folders: string[] = [];
  beforeAll(async () => {
    server = await startServer('nats');
    connections = [await server.nats(), await server.nats()];
  });
  afterAll(async () => {
    await server.stop();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  /** A log of JetStream, over two connections. */
  const onJetStream = (options: Partial<JetStreamLogOptions> = {}) => {
    const name = randomUUID();
    return connections.map((connection) => jetStreamLog(connection, { name, ...options }));
  };

  const engines: Readonly<Record<string, () => readonly FeedLog[]>> = {
    'in a folder': () => {
      const folder = mkdtempSync(join(tmpdir(), 'feed-log-'));
      folders.push(folder);
      return [feedLog(folder), feedLog(folder)];
    },
    'on JetStream': onJetStream,
  };

  describe.each(Object.entries(engines))('%s', (engine, open) => {
    it('returns what was appended, with offsets, and continues after a gap', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      const events = [opened(), frame(1), 7, { type: 'watermark', at: 1_001 }, frame(2)];
      expect(await append(log, events)).toEqual(events);
      await append(other, [opened(5_000), frame(3, 5_001)]);
      const expected = ['0:opened', '1:{"n":1}', '2:{"n":2}', '3:opened', '4:gap log-paused', '5:{"n":3}'];
      for (const each of [log, other]) expect(short(await all(each))).toEqual(expected);
    });

    it('can be read from an offset, from a time and from the end, and each offset has one content', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      const writer = write(log);
      writer.send(opened());
      for (let n = 1; n <= 500; n += 50) {
        writer.send(...frames(50, n));
        await waitFor(async () => textsOf(await soFar(other)).length === n + 49);
      }
      await writer.end();
      const records = await all(other);
      const offsetOf = (record: LogRecord) => (record as { readonly offset?: number }).offset;
      expect(records.map(offsetOf)).toEqual(Array.from({ length: 501 }, (_, n) => n));
      for (const [place, first] of [
        [{ offset: 400 }, 400],
        [{ time: 1_333 }, 333],
        [{ time: 0 }, 0],
        [(records[249] as { position: object }).position, 250],
      ] as const) {
        const found = await all(log, { from: place });
        expect(found[0]).toMatchObject({ type: 'opened' });
        expect(found.filter((record) => offsetOf(record) !== undefined)).toEqual(records.slice(first));
      }
      expect(textsOf(await all(log, { from: { time: 9_999 } }))).toEqual([]);
      expect(short(await all(log, { from: 'latest' }))).toEqual(['-:opened']);
    });

    it('is followed live without a seam by readers that begin at any time', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      const writer = write(log);
      const readers = [follow(other)];
      writer.send(opened());
      for (let n = 1; n <= 1_000; n += 20) {
        writer.send(...frames(20, n));
        if (n % 100 === 1) readers.push(follow(n % 200 === 1 ? log : other));
        await waitFor(() => textsOf(readers[0]!.records).length > n - 40);
      }
      for (const { records, stop } of readers) {
        await waitFor(() => textsOf(records).length === 1_000);
        stop();
        expect(textsOf(records)).toEqual(texts(1_000));
        expect(records.filter(({ type }) => type === 'gap')).toEqual([]);
      }
      await writer.end();
    });

    it('tells the time while the market is quiet, and that its writer has ended', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      const now = Date.now();
      const writer = write(log);
      const { records, stop } = follow(other);
      writer.send(opened(now), frame(1, now));
      await waitFor(() => records.some((record) => record.type === 'watermark' && record.at > now));
      await writer.end();
      await waitFor(() => records.at(-1)?.type === 'disconnected');
      expect(short(records).slice(-2)).toEqual(['1:{"n":1}', '-:disconnected log-writer-gone']);
      await append(log, [opened(now + 9), frame(2, now + 9)]);
      await waitFor(() => textsOf(records).length === 2);
      stop();
    });

    it('refuses a second writer while the first one is there', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      const writer = write(log);
      writer.send(opened(), frame(1));
      await waitFor(async () => textsOf(await soFar(log)).length === 1);
      await expect(append(other, [])).rejects.toMatchObject({ code: 'log-in-use' });
      await writer.end();
      await append(other, [opened(2_000)]);
    });

    it('stops with its source, and says so', async () => {
      const [log] = open() as [FeedLog];
      const failing = concat(
        from([opened(), frame(1)]),
        throwError(() => new Error('over')),
      );
      await expect(lastValueFrom(failing.pipe(log.append()))).rejects.toThrow('over');
      expect((await all(log)).map(({ type }) => type)).toEqual(['opened', 'frame', 'stopped']);
    });

    it('replaces the records that retention has removed by a gap with their number', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      const limits = engine === 'on JetStream' ? { maxBytes: 20_000 } : { maxBytes: 20_000, segmentBytes: 4_000 };
      const writer = write(log, limits);
      writer.send(opened());
      for (let n = 1; n <= 1_000; n += 20) {
        writer.send(...frames(20, n));
        await waitFor(async () => textsOf(await soFar(other, { from: { offset: n + 19 } })).length === 1);
      }
      await writer.end();
      const [status, gap, ...rest] = await all(other, { from: { offset: 0, frames: 0, holes: 0 } });
      expect(status).toMatchObject({ type: 'opened' });
      const { missed = 0 } = gap as { readonly missed?: number };
      expect(missed).toBeGreaterThan(500);
      expect(gap).toMatchObject({ type: 'gap', failure: { code: 'log-behind' } });
      expect(textsOf(rest)).toEqual(texts(1_000 - missed, missed + 1));
      const consumed = lastValueFrom(
        other.consume$('strict', () => Promise.resolve(), { onLoss: 'error', from: { offset: 0 } }),
      );
      await expect(consumed).rejects.toMatchObject({ code: 'log-behind' });
    });

    it('has a consumer that continues where it was, and stays at work that fails', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      await append(log, [opened(), ...frames(100)]);
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
      expect(textsOf(seen)).toEqual([...texts(29), ...texts(62, 39)]);
    });

    it('has one process for each consumer', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
      await append(log, [opened(), frame(1)]);
      const counts: number[] = [];
      const running = log.consume$('db', (records) => Promise.resolve(counts.push(records.length))).subscribe();
      await waitFor(async () => (await other.committed('db'))?.offset === 2);
      const second = lastValueFrom(other.consume$('db', () => Promise.resolve()));
      await expect(second).rejects.toMatchObject({ code: 'consumer-in-use' });
      await lastValueFrom(other.consume$('mail', () => Promise.resolve()).pipe(take(1)));
      running.unsubscribe();
      await append(log, [opened(2_000)]);
      await waitFor(() =>
        lastValueFrom(other.consume$('db', () => Promise.resolve()).pipe(take(1))).then(
          ({ committed }) => committed > 2,
          () => false,
        ),
      );
    });

    it('has frames that are larger than a message of NATS', async () => {
      const [log, other] = open() as [FeedLog, FeedLog];
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
  });

  describe('on JetStream', () => {
    it('is taken over by a higher generation, and refuses a lower one', async () => {
      const [log, other] = onJetStream() as [FeedLog, FeedLog];
      const reader = follow(other);
      const first = write(log, { generation: 3 });
      first.send(opened(), frame(1));
      await waitFor(() => textsOf(reader.records).length === 1);
      await expect(append(other, [], { generation: 3 })).rejects.toMatchObject({ code: 'log-in-use' });
      await expect(append(other, [], { generation: 2 })).rejects.toMatchObject({ code: 'log-fenced' });
      const second = write(other, { generation: 4 });
      second.send(opened(2_000), frame(2, 2_001));
      await waitFor(() => textsOf(reader.records).length === 2);
      first.send(frame(3, 2_002));
      await waitFor(() => first.errors.length > 0);
      expect(first.errors[0]).toMatchObject({ code: 'log-fenced' });
      await second.end();
      await expect(append(log, [], { generation: 3 })).rejects.toMatchObject({ code: 'log-fenced' });
      const expected = ['0:opened', '1:{"n":1}', '2:opened', '3:gap log-paused', '4:{"n":2}'];
      await waitFor(() => short(reader.records).length >= expected.length);
      expect(short(reader.records).slice(0, expected.length)).toEqual(expected);
      reader.stop();
    });

    it('has one of two writers that begin at the same time', async () => {
      const logs = onJetStream() as [FeedLog, FeedLog];
      await append(logs[0], [opened(), frame(1)]);
      const writers = logs.map((log) => write(log));
      await waitFor(() => writers.some(({ errors }) => errors.length > 0));
      const lasting = writers.filter(({ errors }) => errors.length === 0);
      expect(lasting).toHaveLength(1);
      lasting[0]!.send(opened(2_000), frame(2, 2_001));
      await lasting[0]!.end();
      expect(textsOf(await all(logs[0]))).toEqual(texts(2));
    });

    it('goes on with the same records when the server accepts them again', async () => {
      const name = randomUUID();
      const [log, other] = connections.map((connection) => jetStreamLog(connection, { name })) as [FeedLog, FeedLog];
      const errors: LogError[] = [];
      const writer = write(log, { onError: (error: LogError) => errors.push(error) });
      const strict = write(jetStreamLog(connections[0], { name: `${name}-strict` }));
      writer.send(opened(), frame(1));
      strict.send(opened(), frame(1));
      const { streams } = await jetstreamManager(connections[1]);
      const limit = (log: string, max_msg_size: number) =>
        waitFor(() => streams.update(`RTF_LOG_${log}`, { max_msg_size }).catch(() => undefined));
      await waitFor(async () => textsOf(await soFar(other)).length === 1);
      await limit(name, 10);
      await limit(`${name}-strict`, 10);
      writer.send(frame(2));
      strict.send(frame(2));
      await waitFor(() => errors.length + strict.errors.length === 2);
      await limit(name, -1);
      writer.send(frame(3));
      await writer.end();
      expect([...errors, ...strict.errors].map(({ code }) => code)).toEqual(['log-write-failed', 'log-write-failed']);
      expect(writer.errors).toEqual([]);
      expect(short(await all(other)).slice(1)).toEqual(texts(3).map((text, n) => `${n + 1}:${text}`));
    });

    it('passes a cursor that another process has moved on to nobody', async () => {
      const name = randomUUID();
      const log = jetStreamLog(connections[0], { name });
      const writer = write(log);
      writer.send(opened(), frame(1));
      const errors: LogError[] = [];
      const running = log
        .consume$('db', () => Promise.resolve())
        .subscribe({ error: (error: LogError) => errors.push(error) });
      await waitFor(async () => (await log.committed('db'))?.offset === 2);
      const bucket = await new Kvm(connections[1]).open('rtf-cursors');
      const { offset, log: id } = (await log.committed('db'))!;
      await bucket.put(`${name}.db`, JSON.stringify({ offset, log: id, owner: 'another process' }));
      writer.send(frame(2));
      await waitFor(() => errors.length > 0);
      expect(errors[0]).toMatchObject({ code: 'consumer-in-use' });
      running.unsubscribe();
      await bucket.put(`${name}.db`, 'no JSON');
      await expect(log.committed('db')).rejects.toMatchObject({ code: 'log-corrupt' });
      await expect(lastValueFrom(log.consume$('db', () => Promise.resolve()))).rejects.toMatchObject({
        code: 'log-corrupt',
      });
      await bucket.delete(`${name}.db`);
      expect(await log.committed('db')).toBeUndefined();
      expect(await lastValueFrom(log.consume$('db', () => Promise.resolve()).pipe(take(1)))).toMatchObject({
        committed: 3,
      });
      await writer.end();
    });

    it('reads on after what is not a message of a log, and after a part of a record', async () => {
      const name = randomUUID();
      const log = jetStreamLog(connections[0], { name });
      const reader = follow(log);
      await append(log, [opened(), frame(1)]);
      connections[1].publish(`rtf.log.${name}.tip`, 'not a tip');
      const publish = (text: string) => jetstream(connections[0]).publish(`rtf.log.${name}`, text);
      await publish('not a log');
      await expect(append(log, [])).rejects.toMatchObject({ code: 'log-corrupt' });
      const { log: id } = ((await all(log)).at(-1) as { position: { log: string } }).position;
      const next = { offset: 2, frames: 1, holes: 0, at: 1_001 };
      const header = {
        ...next,
        log: id,
        boot: connections[0].info?.server_id,
        state: [],
        run: 'a',
        generation: 0,
      } as never as object;
      const line = (more: object) => headerLine({ ...header, ...more } as never);
      // A writer that died between two parts of a record.
      await publish(`${line({ next, part: 0, parts: 2 })}{"offset":2,`);
      await append(log, [opened(2_000), frame(2, 2_001)]);
      expect(short(await all(log))).toEqual(['0:opened', '1:{"n":1}', '2:opened', '3:gap log-paused', '4:{"n":2}']);
      await expect(all(log, { onDamage: 'error' })).rejects.toMatchObject({ code: 'log-corrupt' });
      await waitFor(() => textsOf(reader.records).length === 2);
      reader.stop();
    });

    it('is not there before its first writer: a reader that follows waits, another one fails', async () => {
      const [log, other] = onJetStream() as [FeedLog, FeedLog];
      const reader = follow(other);
      await expect(all(log)).rejects.toMatchObject({ code: 'log-corrupt' });
      await append(log, [opened(), frame(1)]);
      await waitFor(() => textsOf(reader.records).length === 1);
      reader.stop();
    });

    it.each<[string, () => unknown, string]>([
      ['a name with a dot', () => jetStreamLog(connections[0], { name: 'a.b' }), 'name'],
      ['no name', () => jetStreamLog(connections[0], {} as never), 'name'],
      ['two replicas', () => jetStreamLog(connections[0], { name: 'a', replicas: 2 }), 'replicas'],
      ['no connection', () => jetStreamLog({} as never, { name: 'a' }), 'connection'],
      ['syncMs', () => jetStreamLog(connections[0], { name: 'a' }).append({ syncMs: 1 } as never), 'syncMs'],
      ['a short age', () => jetStreamLog(connections[0], { name: 'a' }).append({ maxAgeMs: 99 }), 'maxAgeMs'],
      [
        'half a generation',
        () => jetStreamLog(connections[0], { name: 'a' }).append({ generation: 0.5 }),
        'generation',
      ],
    ])('refuses %s', (_, call, option) => {
      expect(call).toThrow(expect.objectContaining({ code: 'invalid-options', option }));
    });
  });
});

const permissions = ['$JS.API.>', '$KV.rtf-cursors.>', 'rtf.log.market', 'rtf.log.market.>', '_INBOX.>'];

describeInstalled('nats', 'a log on a NATS server with permissions', () => {
  let server: RealServer;
  beforeAll(async () => {
    const allowed = JSON.stringify(permissions);
    const user = (name: string, publish: string, subscribe: string) =>
      `{ user: ${name}, password: log, permissions: { publish: ${publish}, subscribe: ${subscribe} } }`;
    const all = `{ allow: ">" }`;
    const others = `{ allow: ">", deny: ["rtf.log.market.writer", "rtf.log.market.consumer.db"] }`;
    const users = [user('log', allowed, allowed), user('mute', others, all), user('deaf', all, others)];
    server = await startServer('nats', `authorization { users = [${users.join()}] }`);
  });
  afterAll(() => server.stop());
  const logOf = async (user: string, name = 'market') =>
    jetStreamLog(await server.nats({ user, pass: 'log' }), { name });

  it('needs those of the guide', async () => {
    const log = await logOf('log');
    await append(log, [opened(), frame(1)]);
    await lastValueFrom(log.consume$('db', () => Promise.resolve()).pipe(take(1)));
    expect(await log.committed('db')).toMatchObject({ offset: 2 });
    const guide = readFileSync('docs/log.md', 'utf8').replace(/\s+/g, ' ');
    for (const subject of permissions) expect(guide).toContain(`\`${subject}\``);
  });

  const refusal = (role: string) => ({
    code: 'log-write-failed',
    path: 'RTF_LOG_market',
    message: expect.stringMatching(
      `^NATS refuses the subject rtf\\.log\\.market\\.${role}, .* Give the user permission .* rtf\\.log\\.market\\.>\\.`,
    ),
  });

  it.each(['mute', 'deaf'])('refuses a writer and a consumer whose role others could not see: %s', async (user) => {
    const log = await logOf(user);
    await expect(append(log, [opened(2_000)])).rejects.toMatchObject(refusal('writer'));
    const consumed = lastValueFrom(log.consume$('db', () => Promise.resolve()));
    await expect(consumed).rejects.toMatchObject(refusal('consumer\\.db'));
  });

  it('keeps its writer when another one may not ask for it', async () => {
    const log = await logOf('log');
    const writer = write(log);
    const reader = follow(log);
    writer.send(opened(2_000), frame(2, 2_001));
    await waitFor(() => textsOf(reader.records).includes('{"n":2}'));
    await expect(append(await logOf('mute'), [])).rejects.toMatchObject(refusal('writer'));
    writer.send(frame(3, 2_002));
    await writer.end();
    await waitFor(() => textsOf(reader.records).includes('{"n":3}'));
    reader.stop();
    expect(writer.errors).toEqual([]);
  });
});

describeInstalled('nats', 'a log on a NATS server that fails', () => {
  /** A server, a log over two connections, a reader that follows, and a writer. */
  const setUp = async (options = {}) => {
    const server = await startServer('nats');
    const connections = [await server.nats(), await server.nats()] as const;
    const [log, other] = connections.map((connection) => jetStreamLog(connection, { name: 'market' })) as [
      FeedLog,
      FeedLog,
    ];
    const reader = follow(other);
    server.defer(() => reader.stop());
    const writer = write(log, options);
    writer.send(opened(), ...frames(10));
    await waitFor(() => textsOf(reader.records).length === 10);
    return { server, connections, log, other, reader, writer };
  };

  it('loses nothing and repeats nothing when the server is killed and restarted again and again', async () => {
    const { server, reader, log, other, writer } = await setUp();
    await using _ = server;
    const consumed: LogRecord[] = [];
    const consuming = other.consume$('db', (records) => Promise.resolve(consumed.push(...records))).subscribe();
    let sent = 10;
    const send = () => writer.send(...frames(10, (sent += 10) - 9));
    for (let round = 0; round < 4; round += 1) {
      send();
      await server.broker.kill();
      send();
      await server.broker.start();
      send();
      await waitFor(() => textsOf(reader.records).length === sent, { limitMs: 30_000 });
    }
    await writer.end();
    expect(writer.errors).toEqual([]);
    expect(textsOf(reader.records)).toEqual(texts(sent));
    expect(short(await all(log))).toEqual(['0:opened', ...texts(sent).map((text, n) => `${n + 1}:${text}`)]);
    await waitFor(() => textsOf(consumed).length >= sent, { limitMs: 30_000 });
    expect(new Set(textsOf(consumed)).size).toBe(sent);
    consuming.unsubscribe();
    // The next writer can't know whether the server has lost something.
    await append(log, [opened(9_000), frame(1, 9_001)]);
    expect(short(await all(log)).slice(-3)).toEqual([
      '1000000000:opened',
      '1000000001:gap log-paused',
      '1000000002:{"n":1}',
    ]);
    await waitFor(() => short(reader.records).at(-1) === '1000000002:{"n":1}');
    expect(short(reader.records)).not.toContain('-:gap log-behind');
  }, 120_000);

  it('counts the frames that find no room while the server is away, or ends', async () => {
    const errors: LogError[] = [];
    const { server, reader, log, writer } = await setUp({
      maxWaitingBytes: 10_000,
      onError: (error: LogError) => errors.push(error),
    });
    await using _ = server;
    await server.broker.kill();
    writer.send(...frames(1_000, 11));
    expect(errors.map(({ code }) => code)).toEqual(['log-write-failed']);
    await server.broker.start();
    const gap = () => reader.records.find(({ type }) => type === 'gap') as { readonly missed: number } | undefined;
    await waitFor(gap, { limitMs: 30_000 });
    const { missed } = gap()!;
    expect(missed).toBeGreaterThan(900);
    writer.send(...frames(5, 1_011));
    await writer.end();
    const stored = [...texts(1_010 - missed), ...texts(5, 1_011)];
    expect(textsOf(await all(log))).toEqual(stored);
    await waitFor(() => textsOf(reader.records).length === stored.length);

    const strict = write(log, { maxWaitingBytes: 1_000 });
    await server.broker.kill();
    strict.send(opened(), ...frames(10));
    await waitFor(() => strict.errors.length > 0);
    expect(strict.errors.map(({ code }) => code)).toEqual(['log-write-failed']);
  }, 120_000);

  it('begins a new log after the server has lost its data, with a gap for readers and consumers', async () => {
    const { server, reader, log, other, writer } = await setUp();
    await using _ = server;
    await lastValueFrom(other.consume$('db', () => Promise.resolve()).pipe(take(1)));
    const { position } = reader.records.find((record) => record.type === 'frame')! as never as { position: object };
    await server.broker.kill();
    server.broker.wipe();
    await server.broker.start();
    writer.send(frame(11));
    await waitFor(() => writer.errors.length > 0, { limitMs: 30_000 });
    expect(writer.errors[0]).toMatchObject({ code: 'log-write-failed' });
    await append(log, [opened(5_000), ...frames(3, 100)]);
    await waitFor(() => textsOf(reader.records).length === 13, { limitMs: 30_000 });
    const codes = reader.records.flatMap((record) => (record.type === 'gap' ? [record.failure.code] : []));
    expect(codes).toEqual(['log-behind']);
    expect(short(await all(log, { from: position }))[0]).toBe('-:gap log-behind');
    expect(textsOf(await all(log))).toEqual(texts(3, 100));
  }, 120_000);

  it('ends readers and writers when the connection is closed', async () => {
    const { server, connections, reader, writer } = await setUp();
    await using _ = server;
    await connections[0].close();
    writer.send(frame(11));
    await waitFor(() => writer.errors.length > 0, { limitMs: 30_000 });
    expect(writer.errors[0]).toMatchObject({ code: 'log-write-failed' });
    await connections[1].close();
    await waitFor(() => reader.errors.length > 0, { limitMs: 30_000 });
    expect(reader.errors[0]).toMatchObject({ code: 'log-corrupt' });
    await expect(append(jetStreamLog(connections[0], { name: 'market' }), [])).rejects.toMatchObject({
      code: 'log-write-failed',
    });
  }, 120_000);
});
