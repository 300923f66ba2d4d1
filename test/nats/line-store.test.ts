/**
 * @lane brokers
 * @ci
 */
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { DiscardPolicy, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom } from 'rxjs';
import type { ClusterEngine } from '../../src/cluster/engine.js';
import type { LineSpec, LineStore } from '../../src/log/line-store.js';
import { natsEngine, type NatsEngineOptions } from '../../src/nats/index.js';
import { append, bytesOf, headOf, headsOf, names, read } from '../../src/testing/line-store-tests.js';
import { openStore, received, refusals, runStoreTests } from '../cluster/support/line-stores.js';
import {
  becomes,
  describeInstalled,
  eventually,
  type RealServer,
  startServer,
} from '../cluster/support/real-server.js';
import { startNatsCluster } from '../peers/brokers.mjs';
import { startLimitMs, waitFor } from '../support/wait-for.js';

const open = async (server: RealServer, client?: NodeConnectionOptions, options?: NatsEngineOptions) => {
  const connection = await server.nats(client);
  return { connection, ...openStore(natsEngine(connection, options)) };
};

/** Returns the texts of the messages that subscribers receive from now on. */
const listen = async (engine: ClusterEngine, connection: NatsConnection): Promise<readonly string[]> => {
  const names = received(engine);
  await connection.flush();
  return names;
};

const stream = { name: 'RTF_LINE_main', subjects: ['rtf.v2.main.feed', 'rtf.v2.main.again'] };

/** Creates the stream as an operator would. */
const create = async (connection: NatsConnection, config: Partial<StreamConfig>) =>
  (await jetstreamManager(connection)).streams.add({ ...stream, storage: 'memory', allow_direct: true, ...config });

describeInstalled('nats', 'a line in a stream of NATS', () => {
  let server: RealServer;
  beforeAll(async () => {
    server = await startServer('nats');
  });
  afterAll(() => server.stop());
  afterEach(async () => {
    const { streams } = await jetstreamManager(await server.nats());
    await streams.delete(stream.name).catch(() => undefined);
  });

  it('creates a stream in memory with the two subjects, and leaves one that exists as it is', async () => {
    const { connection, store } = await open(server);
    await store.end();
    const { streams } = await jetstreamManager(connection);
    const { config } = await streams.info(stream.name);
    expect(config).toMatchObject({
      ...{ ...stream, storage: 'memory', max_age: 60e9, max_bytes: 64 * 1024 * 1024, discard: 'old' },
      ...{ allow_direct: true, num_replicas: 1 },
    });
    await streams.update(stream.name, { max_age: 120e9 });
    await store.end();
    expect((await streams.info(stream.name)).config.max_age).toBe(120e9);
  });

  it('creates a stream with what it is to keep, and sets only the limits that are given', async () => {
    const { connection, engine } = await open(server);
    const { streams } = await jetstreamManager(connection);
    const configured = async (spec: Pick<LineSpec, 'storage' | 'maxAgeMs' | 'maxBytes'>) => {
      await engine.line!({ ...spec, kind: 'line', name: 'main', headOf }).end();
      return (await streams.info(stream.name)).config;
    };
    const created = await configured({ storage: 'file', maxAgeMs: 3_600_000 });
    expect(created).toMatchObject({ storage: 'file', max_age: 3_600e9, max_bytes: 64 * 1024 * 1024 });
    await streams.update(stream.name, { max_bytes: 5_000_000 });
    expect(await configured({ maxAgeMs: Infinity })).toMatchObject({ max_age: 0, max_bytes: 5_000_000 });
    expect(await configured({ maxAgeMs: 1_000_000 / 3 })).toMatchObject({ max_age: 333_333_000_000 });
  });

  it('goes on after a restart that lost the messages, and sends nothing late that was appended meanwhile', async () => {
    const { engine, store, reports, connection } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 100));
    const received = await listen(engine, connection);
    await server.broker.kill();
    await becomes(engine, false);
    expect(await append(store, headsOf(1, 100, 110, { began: 0 }))).toBe('away');
    await expect(store.end()).rejects.toThrow('disconnected');
    await expect(read(store, 0)).rejects.toThrow('disconnected');
    await server.broker.start();
    await becomes(engine);
    expect(await eventually(() => store.end())).toEqual([undefined]);
    expect(await append(store, headsOf(1, 110, 120, { began: 0 }))).toBe(120);
    expect(await read(store, 0)).toEqual(names(1, 110, 120));
    await waitFor(() => received.includes('1.119'));
    expect(received).toEqual(names(1, 110, 120));
    expect(refusals(reports)).toHaveLength(1);
  });

  it('goes on after a restart of a server that stores the stream in a file', async () => {
    const { connection, engine, store } = await open(server);
    await create(connection, { storage: 'file' });
    await store.end();
    await append(store, headsOf(1, 0, 200));
    await server.broker.kill();
    await becomes(engine, false);
    await server.broker.start();
    await becomes(engine);
    const [end] = await eventually(() => store.end());
    expect(end).toMatchObject({ gen: 1, offset: 199 });
    expect(await append(store, headsOf(1, 200, 300, { began: 0 }))).toBe(300);
    expect(await read(store, 0)).toEqual(names(1, 0, 300));
  });

  it('refuses a replaced owner after all messages were removed', async () => {
    const [{ connection, store }, { store: other }] = [await open(server), await open(server)];
    await store.end();
    await append(store, headsOf(1, 0, 10));
    await other.end();
    await append(other, headsOf(2, 10, 12));
    await (await jetstreamManager(connection)).streams.purge(stream.name);
    expect(await append(store, headsOf(1, 10, 40, { began: 0 }))).toBe('fenced');
    expect(await other.extent()).toBeUndefined();
    expect(await append(other, headsOf(2, 12, 20, { began: 10 }))).toBe(20);
    expect(await read(other, 0)).toEqual(names(2, 12, 20));
  });

  it.each<[string, Partial<StreamConfig>, RegExp]>([
    ['bytes', { max_bytes: 4_000 }, /full: maximum bytes exceeded/],
    ['messages', { max_msgs: 10 }, /full: maximum messages exceeded/],
  ])('says when a stream has no room for %s, and goes on publishing live', async (_, limits, message) => {
    const { connection, engine, store, reports } = await open(server);
    await create(connection, { discard: DiscardPolicy.New, ...limits });
    await store.end();
    const received = await listen(engine, connection);
    // Only an answer says why. The next ones follow a message that's missing.
    for (const [n, head] of headsOf(1, 0, 100).entries()) {
      store.append(head, bytesOf(head));
      if (n > 10) await waitFor(() => reports.length > 0);
    }
    await waitFor(() => received.length === 100);
    expect(received).toEqual(names(1, 0, 100));
    expect(refusals(reports)).toHaveLength(1);
    const end = (await store.end())!;
    expect(end.offset).toBeLessThan(20);
    const next = headsOf(1, end.offset + 1, 100, { began: 0 });
    expect(await append(store, next, true)).toBe('full');
    expect(refusals(reports)[1]).toMatch(message);
    await (await jetstreamManager(connection)).streams.purge(stream.name);
    await store.end();
    expect(await append(store, next.slice(0, 5), true)).toBe(end.offset + 6);
    expect(received).toHaveLength(100);
  });

  it('says that it is away when the server hangs, and has what was sent once it goes on', async () => {
    const { store, reports } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 10));
    process.kill(server.broker.pid!, 'SIGSTOP');
    try {
      const heads = headsOf(1, 10, 50, { began: 0 });
      for (const head of heads) store.append(head, bytesOf(head));
      expect(await waitFor(() => refusals(reports)[0])).toMatch(/^away: /);
      await expect(store.end()).rejects.toThrow(/timeout/i);
    } finally {
      process.kill(server.broker.pid!, 'SIGCONT');
    }
    const end = await waitFor(() => store.end().then((head) => (head?.offset === 49 ? head : undefined)));
    expect(end).toMatchObject({ gen: 1, offset: 49 });
    expect(await append(store, headsOf(1, 45, 60, { began: 0 }), true)).toBe(60);
    expect([...new Set(await read(store, 0))]).toEqual(names(1, 0, 60));
  });

  it('reads 30,000 messages, and finds a time among them', async () => {
    const { connection, store } = await open(server);
    await store.end();
    for (let n = 0; n < 30_000; n += 1_000) {
      expect(await append(store, headsOf(1, n, n + 1_000, { began: 0 }))).toBe(n + 1_000);
    }
    const { inMsgs } = connection.stats();
    expect(await store.since(1_000 + 10 * 12_345)).toBe(12_345);
    expect(connection.stats().inMsgs - inMsgs).toBeLessThan(20);
    expect(await read(store, 0)).toEqual(names(1, 0, 30_000));
    expect(await read(store, 29_937)).toEqual(names(1, 29_937, 30_000));
  });

  it('fails to read when the server is killed', async () => {
    const { engine, store } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 2_000));
    let count = 0;
    const reading = (async () => {
      for await (const _ of store.read(0, new AbortController().signal)) {
        count += 1;
        if (count !== 300) continue;
        await server.broker.kill();
        await becomes(engine, false);
      }
    })();
    await expect(reading).rejects.toThrow();
    await server.broker.start();
    await becomes(engine);
  });

  it('ignores what another program publishes to the subject', async () => {
    const { connection, store } = await open(server);
    await store.end();
    await append(store, headsOf(1, 0, 100));
    for (let n = 0; n < 50; n += 1) connection.publish('rtf.v2.main.feed', 'hello');
    await connection.flush();
    expect(await store.end()).toMatchObject({ offset: 99 });
    expect(await append(store, headsOf(1, 100, 120, { began: 0 }))).toBe(120);
    expect((await read(store, 90)).filter((name) => !name.includes('NaN'))).toEqual(names(1, 90, 120));
    expect(await store.since(1_000)).toBe(0);
    expect(await store.since(1_000 + 10 * 105)).toBe(105);
  });

  it('passes what another program publishes only once, and sees what becomes of the messages before it', async () => {
    const [{ connection, store }, { store: other, connection: ofOther }] = [await open(server), await open(server)];
    const { streams } = await jetstreamManager(ofOther);
    const lastOf = async () => (await store.last())?.offset;
    const publish = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) ofOther.publish('rtf.v2.main.feed', 'hello');
      await ofOther.flush();
    };
    await other.end();
    await append(other, headsOf(1, 0, 10));
    await publish(100);
    expect(await lastOf()).toBe(9);
    await publish(2);
    const { outMsgs } = connection.stats();
    expect([await lastOf(), await lastOf()]).toEqual([9, 9]);
    expect(connection.stats().outMsgs - outMsgs).toBeLessThan(10);
    await streams.deleteMessage(stream.name, 10);
    expect(await lastOf()).toBe(8);
    await other.end();
    await append(other, headsOf(1, 9, 12, { began: 0 }));
    expect(await lastOf()).toBe(11);
    await publish(5);
    expect(await lastOf()).toBe(11);
    await streams.purge(stream.name, { keep: 3 });
    expect([await lastOf(), await lastOf()]).toEqual([undefined, undefined]);
    await streams.delete(stream.name);
    await other.end();
    await append(other, headsOf(2, 0, 150));
    expect(await lastOf()).toBe(149);
  });

  it('refuses a message that is larger than the limit of the server', async () => {
    const { connection, engine, store } = await open(server);
    await store.end();
    const [head] = headsOf(1, 0, 1);
    const refused = firstValueFrom(store.stored$);
    store.append(head!, Buffer.alloc(connection.info!.max_payload));
    expect(await refused).toMatchObject({ refused: expect.stringMatching(/full|away/) });
    await store.end();
    const stored = firstValueFrom(store.stored$);
    store.append(head!, Buffer.alloc(engine.maxMessageBytes!()!));
    expect(await stored).toEqual({ upTo: 1 });
  });

  it('keeps prefixes apart, and refuses one whose stream is of another', async () => {
    const [a, b] = [await open(server, {}, { prefix: 'team-a.' }), await open(server, {}, { prefix: 'b.c' })];
    for (const { store } of [a, b]) await store.end();
    await append(a.store, headsOf(1, 0, 10));
    await append(b.store, headsOf(1, 0, 20));
    expect([await read(a.store, 0), await read(b.store, 0)].map(({ length }) => length)).toEqual([10, 20]);
    const { streams } = await jetstreamManager(a.connection);
    const { store } = await open(server, {}, { prefix: 'b_c' });
    await expect(store.end()).rejects.toThrow(/RTF_LINE_b_cmain doesn't store the subject b_crtf\.v2\.main\.feed/);
    for (const name of ['RTF_LINE_team-a_main', 'RTF_LINE_b_cmain']) expect(await streams.delete(name)).toBe(true);
  });

  it('is away after its connection was closed', async () => {
    const { connection, store } = await open(server);
    await store.end();
    await connection.close();
    expect(await append(store, headsOf(1, 0, 10))).toBe('away');
    await expect(store.end()).rejects.toThrow('disconnected');
  });
});

describeInstalled('nats', 'the permissions of a line in a stream of NATS', () => {
  const needed = [
    ...['rtf.v2.main.feed', 'rtf.v2.main.again'],
    ...['STREAM.INFO', 'STREAM.CREATE', 'STREAM.MSG.GET', 'DIRECT.GET'].map((each) => `$JS.API.${each}.RTF_LINE_main`),
    ...['CREATE', 'MSG.NEXT'].map((each) => `$JS.API.CONSUMER.${each}.RTF_LINE_main.>`),
  ];
  const configOf = (publish: readonly string[]): string => `authorization { users = [
    { user: all, password: all }
    { user: app, password: app, permissions: {
      publish: ${JSON.stringify([...publish, 'test.>'])}, subscribe: ["rtf.v2.main.feed", "_INBOX.>", "test.>"]
    } }
  ] }
  no_auth_user: all`;
  const app = { user: 'app', pass: 'app' };

  it('are those of the guide', async () => {
    await using server = await startServer('nats', configOf(needed));
    const { streams } = await jetstreamManager(await server.nats());
    const [one, other] = [await open(server, app), await open(server, app)];
    const settle = () => other.connection.flush();
    await runStoreTests([one.engine, other.engine], settle, () => streams.delete(stream.name));
  });

  const use = async (store: LineStore): Promise<readonly unknown[]> => {
    await store.end();
    const stored = await append(store, headsOf(1, 0, 200));
    await store.end();
    const again = await append(store, headsOf(1, 200, 210, { began: 0 }), true);
    return [stored, again, (await read(store, 0)).length];
  };

  it('include consumers only to read faster', async () => {
    await using server = await startServer('nats', configOf(needed.filter((each) => !each.includes('CONSUMER'))));
    const { store } = await open(server, app);
    expect(await use(store)).toEqual([200, 210, 210]);
  });

  const required = needed.filter((each) => !each.includes('CONSUMER'));
  it.each(required)('without that to publish to %s, the error names the subject', async (subject) => {
    await using server = await startServer('nats', configOf(needed.filter((each) => each !== subject)));
    const { store, reports, engine } = await open(server, app);
    const failures: string[] = [];
    engine.failures$!.subscribe(({ error }) => failures.push((error as Error).message));
    const problems = await use(store).catch((error: unknown) => [String(error)]);
    const texts = [...problems, ...refusals(reports), ...failures].join();
    expect([subject, texts]).toEqual([subject, expect.stringContaining(subject)]);
  });
});

describeInstalled('nats', 'a line on a NATS server without JetStream', () => {
  it('has no store, but is published', async () => {
    await using server = await startServer('nats-core');
    const { store, reports } = await open(server);
    const { connection, engine } = await open(server);
    await expect(store.end()).rejects.toThrow('jetstream is not enabled');
    await expect(read(store, 0)).rejects.toThrow('jetstream is not enabled');
    const received = await listen(engine, connection);
    expect(await append(store, headsOf(1, 0, 10))).toBe('away');
    for (const head of headsOf(1, 10, 20)) store.append(head, bytesOf(head));
    await waitFor(() => received.length === 20);
    expect(refusals(reports)).toHaveLength(1);
  });
});

describeInstalled('nats', 'a line in a stream with three copies', () => {
  it('goes on with another leader', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-line-'));
    const { ports, kill, stop } = await startNatsCluster(folder, stream.name);
    const servers = ports.map((port) => `127.0.0.1:${port}`);
    const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
    try {
      const store = natsEngine(connection, { replicas: 3 }).line!({ kind: 'line', name: 'main', headOf });
      /** Appends what isn't stored, until all is, like a writer. */
      const appendUntil = (end: number) =>
        waitFor(
          async () => {
            const last = await store.end().catch(() => null);
            if (last === null) return false;
            const from = last === undefined ? 0 : last.offset + last.count;
            return from === end || (await append(store, headsOf(1, from, end, { began: 0 }), true)) === end;
          },
          { limitMs: startLimitMs },
        );
      await appendUntil(1_000);
      await kill();
      await appendUntil(2_000);
      const [read2000] = await eventually(() => read(store, 0));
      expect([...new Set(read2000)]).toEqual(names(1, 0, 2_000));
    } finally {
      await connection.close();
      await stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
