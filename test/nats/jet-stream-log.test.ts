/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { Redis } from 'ioredis';
import { lastValueFrom, take } from 'rxjs';
import type { LogError } from '../../src/log/index.js';
import { encodeMessage } from '../../src/log/log-message.js';
import { Frame } from '../../src/protocol/frame.js';
import type { Place } from '../../src/protocol/place.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { all, append, done, follow, frame, frames, opened, short, startWriter, textsOf } from '../log/support.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';

const limitMs = startLimitMs;
const { stringMatching } = expect;

describeInstalled('nats', 'a log on JetStream', () => {
  it('reads on after what another program has published, and after a part of a record', async () => {
    await using server = await startServer('nats');
    const connection = await server.nats();
    const log = jetStreamLog(connection, { name: 'market' });
    await append(log, [opened(), frame(1)]);
    const publish = (bytes: Uint8Array | string) => jetstream(connection).publish('rtf.log.market.feed', bytes);
    await publish('not a log');
    const { position: next } = (await all(log)).at(-1) as { readonly position: Place };
    // A writer that died between two parts of a record.
    const head = { ...next, gen: next.gen + 1, after: next.gen, began: 2, writer: 'a', state: [], next, count: 1 };
    await publish(encodeMessage({ ...head, part: 0, parts: 2 }, Buffer.from('{"offset":2,')));
    await append(log, [opened(2_000), frame(2, 2_001)]);
    const records = await all(log);
    expect(textsOf(records)).toEqual(['{"n":1}', '{"n":2}']);
    await expect(all(log, { onDamage: 'error' })).rejects.toMatchObject({ code: 'log-corrupt' });
  });

  it('keeps all frames of a server that keeps up, however little may wait', async () => {
    await using server = await startServer('nats');
    const connection = await server.nats();
    const noted: LogError[] = [];
    const log = jetStreamLog(connection, { name: 'market', maxWaitingBytes: 100_000 });
    const writer = startWriter(log, { onError: (error: LogError) => void noted.push(error) });
    writer.send(opened());
    const { streams } = await jetstreamManager(connection);
    const stored = async () => (await streams.info('RTF_LOG_market').catch(() => undefined))?.state.bytes ?? 0;
    await waitFor(stored, { limitMs });
    const text = Buffer.from(JSON.stringify('x'.repeat(20_000)));
    for (let n = 0; n < 20; n += 1) {
      const before = await stored();
      writer.send(new Frame('market', text, false, 1_001 + n, 1));
      await waitFor(async () => noted.length > 0 || (await stored()) > before + 20_000, { limitMs });
    }
    await writer.end();
    expect(noted).toEqual([]);
    expect(textsOf(await all(log))).toHaveLength(20);
  });

  it('stores nothing on a server without JetStream, and says how to start it', async () => {
    await using server = await startServer('nats-core');
    const log = jetStreamLog(await server.nats(), { name: 'market' });
    const failure = { code: 'log-write-failed', message: stringMatching(/not enabled.* start nats-server with -js\./) };
    await expect(append(log, [opened()])).rejects.toMatchObject(failure);
    await expect(lastValueFrom(log.consume$('db', done))).rejects.toMatchObject(failure);
    const noReader = { code: 'log-corrupt', message: failure.message };
    for (const follow of [false, true]) await expect(all(log, { follow })).rejects.toMatchObject(noReader);
    await expect(log.committed('db')).rejects.toMatchObject({ name: 'LogError', code: 'log-corrupt' });
  });

  it('reports a server whose disk limit is reached, and stores everything once there is room', async () => {
    await using server = await startServer('nats', 'jetstream { max_file_store: 2MB }');
    const connection = await server.nats();
    const noted: LogError[] = [];
    const log = jetStreamLog(connection, { name: 'market' });
    const writer = startWriter(log, { onError: (error: LogError) => void noted.push(error) });
    writer.send(opened(), frame(1));
    await waitFor(async () => textsOf(await all(log).catch(() => [])).length === 1, { limitMs });
    const { streams } = await jetstreamManager(connection);
    await streams.add({ name: 'other', subjects: ['other'] });
    // Until the server takes nothing more.
    const fill = () =>
      jetstream(connection)
        .publish('other', Buffer.alloc(100_000))
        .then(
          () => false,
          () => true,
        );
    await waitFor(fill, { limitMs });
    let n = 1;
    await waitFor(
      () => {
        writer.send(frame((n += 1)));
        return noted.length > 0;
      },
      { limitMs },
    );
    expect(noted[0]).toMatchObject({ code: 'log-write-failed', message: stringMatching(/The store is full/) });
    await streams.delete('other');
    await writer.end();
    expect(writer.errors).toEqual([]);
    expect(noted).toHaveLength(1);
    expect(textsOf(await all(log))).toEqual(textsOf(frames(1, n + 1)));
  });

  it.each<[string, (connection: never) => unknown, string]>([
    ['two replicas', (connection) => jetStreamLog(connection, { name: 'a', replicas: 2 }), 'replicas'],
    ['no connection', () => jetStreamLog({} as never, { name: 'a' }), 'connection'],
    [
      'a connection of Redis',
      () => jetStreamLog(new Redis({ lazyConnect: true }) as never, { name: 'a' }),
      'connection',
    ],
    ['syncMs', (connection) => jetStreamLog(connection, { name: 'a' }).append({ syncMs: 1 } as never), 'syncMs'],
  ])('refuses %s', async (_, call, option) => {
    await using server = await startServer('nats');
    const connection = await server.nats();
    expect(() => call(connection as never)).toThrow(expect.objectContaining({ code: 'invalid-options', option }));
  });
});

const permissions = ['$JS.API.>', '$KV.rtf-cursors.>', 'rtf.log.market.>', '_INBOX.>'];

describeInstalled('nats', 'a log on a NATS server with permissions', () => {
  let server: RealServer;
  beforeAll(async () => {
    const allowed = JSON.stringify(permissions);
    const user = (name: string, publish: string, subscribe: string) =>
      `{ user: ${name}, password: log, permissions: { publish: ${publish}, subscribe: ${subscribe} } }`;
    const all = `{ allow: ">" }`;
    const others = `{ allow: ">", deny: ["rtf.log.market.writer", "rtf.log.market.consumer.db"] }`;
    const noRecords = `{ allow: ">", deny: ["rtf.log.market.feed", "rtf.log.market.again"] }`;
    const users = [
      ...[user('log', allowed, allowed), user('mute', others, all), user('deaf', all, others)],
      ...[user('reader', noRecords, all), user('blind', all, noRecords), user('none', '{ deny: ">" }', all)],
    ];
    server = await startServer('nats', `authorization { users = [${users.join()}] }`);
  });
  afterAll(() => server.stop());
  const logOf = async (user: string, name = 'market') =>
    jetStreamLog(await server.nats({ user, pass: 'log' }), { name });

  it('needs few of them', async () => {
    const log = await logOf('log');
    await append(log, [opened(), frame(1)]);
    await lastValueFrom(log.consume$('db', done).pipe(take(1)));
    expect(await log.committed('db')).toMatchObject({ offset: 2 });
  });

  const refusal = (role: string) => ({
    ...{ code: 'log-write-failed', path: 'RTF_LOG_market' },
    message: stringMatching(`refuses the subject rtf\\.log\\.market\\.${role}: .* Give the user permission`),
  });

  it.each(['mute', 'deaf'])('refuses a writer and a consumer whose role others could not see: %s', async (user) => {
    const log = await logOf(user);
    await expect(append(log, [opened(2_000)])).rejects.toMatchObject(refusal('writer'));
    await expect(lastValueFrom(log.consume$('db', done))).rejects.toMatchObject(refusal('consumer\\.db'));
  });

  it('refuses a writer whose records it does not take', async () => {
    const refused = append(await logOf('reader'), [opened(2_000)]);
    await expect(refused).rejects.toMatchObject({ code: 'log-write-failed', message: stringMatching(/permission/i) });
  });

  it('refuses a reader that may not hear the writer, and one that may not read, at once', async () => {
    const at = performance.now();
    const failure = { name: 'LogError', code: 'log-corrupt', message: stringMatching(/permission/i) };
    for (const user of ['blind', 'none']) {
      const reader = follow(await logOf(user));
      await waitFor(() => reader.errors.length > 0, { limitMs });
      expect(reader.errors).toEqual([expect.objectContaining(failure)]);
      expect(short(reader.records).join()).not.toContain('log-writer-gone');
    }
    const log = await logOf('none');
    await expect(all(log)).rejects.toMatchObject(failure);
    await expect(log.committed('db')).rejects.toMatchObject(failure);
    expect(performance.now() - at).toBeLessThan(4_000);
  });

  it('keeps its writer when another one may not ask for it', async () => {
    const log = await logOf('log');
    const writer = startWriter(log);
    const reader = follow(log);
    writer.send(opened(2_000), frame(2, 2_001));
    await waitFor(() => textsOf(reader.records).includes('{"n":2}'), { limitMs });
    await expect(append(await logOf('mute'), [])).rejects.toMatchObject(refusal('writer'));
    writer.send(frame(3, 2_002));
    await writer.end();
    await waitFor(() => textsOf(reader.records).includes('{"n":3}'), { limitMs });
    reader.stop();
    expect(writer.errors).toEqual([]);
  });
});
