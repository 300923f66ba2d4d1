import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connect as connectToNats, type NodeConnectionOptions } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filter, firstValueFrom } from 'rxjs';
import type { ClusterEngine } from '../../../src/cluster/engine.js';
import { clusterEngineTests } from '../../../src/testing/index.js';
import { type BrokerKind, connectEngine, startBroker } from '../../peers/brokers.mjs';
import { natsServer, redisServer } from '../../peers/packages.mjs';
import { itInCi } from '../../support/cases.js';
import { startLimitMs, startTestLimitMs, waitFor } from '../../support/wait-for.js';

const programs: Readonly<Record<BrokerKind, string>> = { nats: natsServer, redis: redisServer };

/**
 * Describes tests that need a server, and gives those of the whole file time to start it. Skips them, with the reason in
 * the name, if it is not installed.
 */
export const describeInstalled = (kind: BrokerKind, name: string, tests: () => void): void => {
  const program = `${kind}-server`;
  jest.setTimeout(startTestLimitMs);
  if (existsSync(programs[kind])) describe(name, tests);
  else describe.skip(`${name}: ${program} is not installed (apt-get install ${program})`, tests);
};

/** Waits until an engine is connected, or away. */
export const becomes = (engine: ClusterEngine, expected = true): Promise<boolean> =>
  firstValueFrom(engine.connected$.pipe(filter((isConnected) => isConnected === expected)));

/** Retries a call until it succeeds, like a replica. */
export const eventually = <T>(call: () => Promise<T>): Promise<readonly [T]> =>
  waitFor(
    () =>
      call().then(
        (value) => [value] as const,
        () => undefined,
      ),
    { limitMs: startLimitMs },
  );

export type RealServer = Awaited<ReturnType<typeof startServer>>;

/** Starts a server, with a configuration file if `config` has a text. */
export const startServer = async (kind: BrokerKind | 'nats-core', config?: string, args: readonly string[] = []) => {
  const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-server-'));
  const file = join(folder, 'server.conf');
  const configure = (text: string): void => writeFileSync(file, text);
  if (config !== undefined) configure(config);
  const broker = await startBroker(kind, folder, [...(config === undefined ? [] : ['-c', file]), ...args]);
  const closing: (() => unknown)[] = [];
  const defer = (close: () => unknown): void => void closing.push(close);
  const stop = async (): Promise<void> => {
    for (const close of closing.reverse()) await close();
    await broker.kill();
    rmSync(folder, { recursive: true, force: true });
  };

  return {
    ...{ broker, configure, stop, [Symbol.asyncDispose]: stop },
    /** Calls a function before the server ends. */
    defer,
    nats: async (options: NodeConnectionOptions = {}) => {
      const servers = `127.0.0.1:${broker.port}`;
      const defaults = { servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 };
      const connection = await connectToNats({ ...defaults, ...options });
      defer(() => connection.close());
      return connection;
    },
    redis: (options: object = {}) => {
      const connection = new Redis(broker.port, '127.0.0.1', { retryStrategy: () => 100, ...options });
      connection.on('error', () => undefined);
      defer(() => connection.disconnect());
      return connection;
    },
    /** Returns an engine with separate connections, which are open. */
    connect: async () => {
      const { engine, close } = await connectEngine(kind === 'redis' ? kind : 'nats', broker.port);
      defer(close);
      await becomes(engine);
      return engine;
    },
  };
};

/**
 * Describes tests with a server that starts once, on a free port. The tests that each engine must pass come first, and `npm test` runs them.
 *
 * @param open - opens two engines of the same connections
 */
export const describeServer = (
  kind: BrokerKind,
  open: (server: RealServer, prefix?: string) => Promise<readonly [ClusterEngine, ClusterEngine]>,
  tests: (server: () => RealServer) => void,
  config?: string,
): void => {
  describeInstalled(kind, `a real ${kind}-server`, () => {
    let server: RealServer;
    let engines: readonly [ClusterEngine, ClusterEngine];

    beforeAll(async () => {
      server = await startServer(kind, config);
      engines = [await server.connect(), await server.connect()];
    });
    afterAll(() => server.stop());

    it.each(clusterEngineTests(() => engines).map(({ name, run }) => [name, run] as const))('%s', (_, run) => run());

    itInCi('is away after a kill, publishes nothing meanwhile, and is back with its key after a restart', async () => {
      const { broker } = server;
      const [one, other] = engines;
      const id = `restart.${randomUUID()}`;
      const revision = await one.compareAndSet(id, 'before', undefined);
      const texts: string[] = [];
      const subscription = other.subscribe(id).subscribe((data) => texts.push(Buffer.from(data).toString()));
      await broker.kill();
      await becomes(one, false);
      one.publish(id, Buffer.from('lost'));
      await expect(one.request('away', Buffer.from('?'), 50)).rejects.toThrow();
      await broker.start();
      await becomes(one);
      expect(await eventually(() => one.read(id))).toEqual([{ value: 'before', revision }]);
      // The other connection may take longer.
      await waitFor(
        () => {
          one.publish(id, Buffer.from('after'));
          return texts.length > 0;
        },
        { limitMs: startLimitMs },
      );
      subscription.unsubscribe();
      expect(texts[0]).toBe('after');
      const [next] = await eventually(() => one.compareAndSet(id, 'after', revision));
      expect(next).toBeGreaterThan(revision as number);
    });

    itInCi('has no key after its data was deleted, and creates it again', async () => {
      const { broker } = server;
      const [one] = engines;
      const id = `wiped.${randomUUID()}`;
      const before = await one.compareAndSet(id, 'before', undefined);
      await broker.kill();
      await becomes(one, false);
      broker.wipe();
      await broker.start();
      await becomes(one);
      expect(await eventually(() => one.read(id))).toEqual([undefined]);
      const [revision] = await eventually(() => one.compareAndSet(id, 'after', undefined));
      expect(await one.read(id)).toEqual({ value: 'after', revision });
      // Its revisions are times, so none is reused.
      if (kind === 'redis') expect(revision).toBeGreaterThan(before as number);
    });

    /** Waits until the server has handled an engine's subscriptions. */
    const settled = (engine: ClusterEngine) => engine.request('settled', Buffer.from(''), 20_000);

    itInCi('puts the prefix before keys and subjects', async () => {
      const [[a], [b]] = [await open(server, 'a.'), await open(server, 'b.')];
      const [none] = engines;
      await a.compareAndSet('key', 'one', undefined);
      expect([await b.read('key'), await none.read('key')]).toEqual([undefined, undefined]);
      expect(await none.read('a.key')).toMatchObject({ value: 'one' });
      const received = Promise.all(
        [a.subscribe('subject'), none.subscribe('a.subject')].map((each) => firstValueFrom(each)),
      );
      await Promise.all([settled(a), settled(none)]);
      none.publish('subject', Buffer.from('without'));
      a.publish('subject', Buffer.from('with'));
      expect((await received).map((data) => Buffer.from(data).toString())).toEqual(['with', 'with']);
    });

    itInCi('keeps the subscriptions of an engine when another engine of the same connections ends', async () => {
      const [before, after] = await open(server);
      const old = [before.subscribe('successor').subscribe(), before.respond('owner', (data) => data).subscribe()];
      const received = firstValueFrom(after.subscribe('successor'));
      after.respond('owner', (data) => data).subscribe();
      for (const subscription of old) subscription.unsubscribe();
      // The answer of the server comes after the end of the old subscriptions.
      expect(await after.request('owner', Buffer.from('?'), 20_000)).toMatchObject({ type: 'reply' });
      engines[0].publish('successor', Buffer.from('message'));
      expect(Buffer.from(await received).toString()).toBe('message');
    });

    tests(() => server);
  });
};
