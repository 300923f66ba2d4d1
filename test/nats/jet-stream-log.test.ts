/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { lastValueFrom, take } from 'rxjs';
import type { LogError, LogRecord } from '../../src/log/index.js';
import { headerLine } from '../../src/log/lines.js';
import { type Place, startOf } from '../../src/protocol/place.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import {
  all,
  append,
  done,
  follow,
  frame,
  frames,
  opened,
  short,
  texts,
  startWriter,
  textsOf,
} from '../log/support.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';

// Servers take long to start on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);

const placesOf = (records: readonly LogRecord[]): readonly Place[] =>
  records.flatMap((record) => (record.type === 'watermark' || record.offset === undefined ? [] : record.position));

describeInstalled('nats', 'a log on JetStream', () => {
  let server: RealServer;
  let connections: readonly [NatsConnection, NatsConnection];
  beforeAll(async () => {
    server = await startServer('nats');
    connections = [await server.nats(), await server.nats()];
  });
  afterAll(() => server.stop());

  /** Opens a new log over two connections. */
  const open = (name = randomUUID()) => {
    const [one, other] = connections;
    return { name, log: jetStreamLog(one, { name }), other: jetStreamLog(other, { name }) };
  };

  it('is taken over by a higher generation, and refuses a lower one', async () => {
    const { log, other } = open();
    const reader = follow(other);
    const first = startWriter(log, { generation: 3 });
    first.send(opened(), frame(1));
    await waitFor(() => textsOf(reader.records).length === 1);
    await expect(append(other, [], { generation: 3 })).rejects.toMatchObject({ code: 'log-in-use' });
    await expect(append(other, [], { generation: 2 })).rejects.toMatchObject({ code: 'log-fenced' });
    const second = startWriter(other, { generation: 4 });
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
    // Also in what a reader that begins there receives.
    for (const records of [reader.records, await all(log, { from: { offset: 2 } })])
      expect(placesOf(records).filter(({ offset }) => offset > 2 && offset <= 5)).toMatchObject(
        [3, 4, 5].map((offset) => ({ gen: 4, offset })),
      );
    expect(placesOf(reader.records).filter(({ offset }) => offset <= 2)).toMatchObject(Array(2).fill({ gen: 3 }));
    reader.stop();
  });

  it('goes on with the same records when the server accepts them again', async () => {
    const { name, log, other } = open();
    const errors: LogError[] = [];
    const writer = startWriter(log, { onError: (error: LogError) => errors.push(error) });
    const strict = startWriter(jetStreamLog(connections[0], { name: `${name}-strict` }));
    writer.send(opened(), frame(1));
    strict.send(opened(), frame(1));
    const { streams } = await jetstreamManager(connections[1]);
    const limit = (log: string, max_msg_size: number) =>
      waitFor(() => streams.update(`RTF_LOG_${log}`, { max_msg_size }).catch(() => undefined));
    await waitFor(async () => textsOf(await all(other).catch(() => [])).length === 1);
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
    expect(short(await all(other)).slice(1)).toEqual(texts(1, 4).map((text, n) => `${n + 1}:${text}`));
  });

  it('passes a cursor that another process has moved on to nobody', async () => {
    const { name, log } = open();
    const writer = startWriter(log);
    writer.send(opened(), frame(1));
    const errors: LogError[] = [];
    const running = log.consume$('db', done).subscribe({ error: (error: LogError) => errors.push(error) });
    await waitFor(async () => (await log.committed('db'))?.offset === 2);
    const bucket = await new Kvm(connections[1]).open('rtf-cursors');
    const { offset, line } = (await log.committed('db'))!;
    await bucket.put(`${name}.db`, JSON.stringify({ offset, line, owner: 'another process' }));
    writer.send(frame(2));
    await waitFor(() => errors.length > 0);
    expect(errors[0]).toMatchObject({ code: 'consumer-in-use' });
    running.unsubscribe();
    await bucket.put(`${name}.db`, 'no JSON');
    await expect(log.committed('db')).rejects.toMatchObject({ code: 'log-corrupt' });
    await expect(lastValueFrom(log.consume$('db', done))).rejects.toMatchObject({ code: 'log-corrupt' });
    await bucket.delete(`${name}.db`);
    expect(await log.committed('db')).toBeUndefined();
    expect(await lastValueFrom(log.consume$('db', done).pipe(take(1)))).toMatchObject({ committed: 3 });
    await writer.end();
  });

  it('reads on after what is not a message of a log, and after a part of a record', async () => {
    const { name, log } = open();
    const reader = follow(log);
    await append(log, [opened(), frame(1)]);
    connections[1].publish(`rtf.log.${name}.tip`, 'not a tip');
    const publish = (text: string) => jetstream(connections[0]).publish(`rtf.log.${name}`, text);
    await publish('not a log');
    await expect(append(log, [])).rejects.toMatchObject({ code: 'log-corrupt' });
    const { position } = (await all(log)).at(-1) as { position: Place };
    expect(position).toEqual({ ...startOf(position.line, 2, 1_001), frames: 1 });
    const next = position;
    const writer = { boot: connections[0].info?.server_id, state: [], run: 'a' };
    // A writer that died between two parts of a record.
    await publish(`${headerLine({ ...next, ...writer, next, part: 0, parts: 2 } as never)}{"offset":2,`);
    await append(log, [opened(2_000), frame(2, 2_001)]);
    expect(short(await all(log))).toEqual(['0:opened', '1:{"n":1}', '2:opened', '3:gap log-paused', '4:{"n":2}']);
    await expect(all(log, { onDamage: 'error' })).rejects.toMatchObject({ code: 'log-corrupt' });
    await waitFor(() => textsOf(reader.records).length === 2);
    reader.stop();
  });

  it('is not there before its first writer: a reader that follows waits, another one fails', async () => {
    const { log, other } = open();
    const reader = follow(other);
    await expect(all(log)).rejects.toMatchObject({
      code: 'log-corrupt',
      message: expect.stringMatching(
        /^There is no stream RTF_LOG_[^ ]+\. Check the name and the server\. The first `append` creates .* See /,
      ),
    });
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
    ['half a generation', () => jetStreamLog(connections[0], { name: 'a' }).append({ generation: 0.5 }), 'generation'],
  ])('refuses %s', (_, call, option) => {
    expect(call).toThrow(expect.objectContaining({ code: 'invalid-options', option }));
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
    const noRecords = `{ allow: ">", deny: "rtf.log.market" }`;
    const users = [
      ...[user('log', allowed, allowed), user('mute', others, all), user('deaf', all, others)],
      user('reader', noRecords, all),
    ];
    server = await startServer('nats', `authorization { users = [${users.join()}] }`);
  });
  afterAll(() => server.stop());
  const logOf = async (user: string, name = 'market') =>
    jetStreamLog(await server.nats({ user, pass: 'log' }), { name });

  it('needs those of the guide', async () => {
    const log = await logOf('log');
    await append(log, [opened(), frame(1)]);
    await lastValueFrom(log.consume$('db', done).pipe(take(1)));
    expect(await log.committed('db')).toMatchObject({ offset: 2 });
    const guide = readFileSync('docs/log.md', 'utf8').replace(/\s+/g, ' ');
    for (const subject of permissions) expect(guide).toContain(`\`${subject}\``);
  });

  const refusal = (role: string) => ({
    code: 'log-write-failed',
    path: 'RTF_LOG_market',
    message: expect.stringMatching(
      `^NATS refuses the subject rtf\\.log\\.market\\.${role}\\. Give the user permission .* rtf\\.log\\.market\\.>\\.`,
    ),
  });

  it.each(['mute', 'deaf'])('refuses a writer and a consumer whose role others could not see: %s', async (user) => {
    const log = await logOf(user);
    await expect(append(log, [opened(2_000)])).rejects.toMatchObject(refusal('writer'));
    const consumed = lastValueFrom(log.consume$('db', done));
    await expect(consumed).rejects.toMatchObject(refusal('consumer\\.db'));
  });

  it('refuses a writer whose records it does not take', async () => {
    const refused = append(await logOf('reader'), [opened(2_000)]);
    await expect(refused).rejects.toMatchObject({
      ...{ code: 'log-write-failed', message: expect.stringContaining('Permissions Violation for Publish') },
    });
  });

  it('keeps its writer when another one may not ask for it', async () => {
    const log = await logOf('log');
    const writer = startWriter(log);
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
    const log = jetStreamLog(connections[0], { name: 'market' });
    const other = jetStreamLog(connections[1], { name: 'market' });
    const reader = follow(other);
    server.defer(() => reader.stop());
    const writer = startWriter(log, options);
    writer.send(opened(), ...frames(1, 11));
    await waitFor(() => textsOf(reader.records).length === 10);
    return { server, connections, log, other, reader, writer };
  };

  it('loses nothing and repeats nothing when the server is killed and restarted again and again', async () => {
    const { server, reader, log, other, writer } = await setUp();
    await using _ = server;
    const consumed: LogRecord[] = [];
    const consuming = other.consume$('db', (records) => Promise.resolve(consumed.push(...records))).subscribe();
    let sent = 10;
    const send = () => writer.send(...frames(sent + 1, (sent += 10) + 1));
    for (let round = 0; round < 4; round += 1) {
      send();
      await server.broker.kill();
      send();
      await server.broker.start();
      send();
      await waitFor(() => textsOf(reader.records).length === sent, { limitMs: startLimitMs });
    }
    await writer.end();
    expect(writer.errors).toEqual([]);
    expect(textsOf(reader.records)).toEqual(texts(1, sent + 1));
    expect(short(await all(log))).toEqual(['0:opened', ...texts(1, sent + 1).map((text, n) => `${n + 1}:${text}`)]);
    await waitFor(() => textsOf(consumed).length >= sent, { limitMs: startLimitMs });
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
  });

  it('counts the frames that find no room while the server is away, or ends', async () => {
    const errors: LogError[] = [];
    const { server, reader, log, writer } = await setUp({
      maxWaitingBytes: 10_000,
      onError: (error: LogError) => errors.push(error),
    });
    await using _ = server;
    await server.broker.kill();
    writer.send(...frames(11, 1_011));
    expect(errors.map(({ code }) => code)).toEqual(['log-write-failed']);
    await server.broker.start();
    const gap = () => reader.records.find(({ type }) => type === 'gap') as { readonly missed: number } | undefined;
    await waitFor(gap, { limitMs: startLimitMs });
    const { missed } = gap()!;
    expect(missed).toBeGreaterThan(900);
    writer.send(...frames(1_011, 1_016));
    await writer.end();
    const stored = [...texts(1, 1_011 - missed), ...texts(1_011, 1_016)];
    expect(textsOf(await all(log))).toEqual(stored);
    await waitFor(() => textsOf(reader.records).length === stored.length);

    const strict = startWriter(log, { maxWaitingBytes: 1_000 });
    await server.broker.kill();
    strict.send(opened(), ...frames(1, 11));
    await waitFor(() => strict.errors.length > 0);
    expect(strict.errors.map(({ code }) => code)).toEqual(['log-write-failed']);
  });

  it('begins a new log after the server has lost its data, with a gap for readers and consumers', async () => {
    const { server, reader, log, other, writer } = await setUp();
    await using _ = server;
    await lastValueFrom(other.consume$('db', done).pipe(take(1)));
    const { position } = reader.records.find((record) => record.type === 'frame')! as never as {
      position: Place;
    };
    await server.broker.kill();
    server.broker.wipe();
    await server.broker.start();
    writer.send(frame(11));
    await waitFor(() => writer.errors.length > 0, { limitMs: startLimitMs });
    expect(writer.errors[0]).toMatchObject({ code: 'log-write-failed' });
    await append(log, [opened(5_000), ...frames(100, 103)]);
    await waitFor(() => textsOf(reader.records).length === 13, { limitMs: startLimitMs });
    const codes = reader.records.flatMap((record) => (record.type === 'gap' ? [record.failure.code] : []));
    expect(codes).toEqual(['log-behind']);
    expect(short(await all(log, { from: position }))[0]).toBe('-:gap log-behind');
    expect(textsOf(await all(log))).toEqual(texts(100, 103));
  });

  it('ends readers and writers when the connection is closed', async () => {
    const { server, connections, reader, writer } = await setUp();
    await using _ = server;
    await connections[0].close();
    writer.send(frame(11));
    await waitFor(() => writer.errors.length > 0, { limitMs: startLimitMs });
    expect(writer.errors[0]).toMatchObject({ code: 'log-write-failed' });
    await connections[1].close();
    await waitFor(() => reader.errors.length > 0, { limitMs: startLimitMs });
    expect(reader.errors[0]).toMatchObject({ code: 'log-corrupt' });
    await expect(append(jetStreamLog(connections[0], { name: 'market' }), [])).rejects.toMatchObject({
      code: 'log-write-failed',
    });
  });
});
