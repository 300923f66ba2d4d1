import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { filter, firstValueFrom, Subject, take, toArray } from 'rxjs';
import type { ClusterEngine } from '../../src/cluster/index.js';
import { redisEngine } from '../../src/redis/index.js';
import { clusterEngineTests } from '../../src/testing/index.js';
import { describeServer } from '../cluster/support/real-server.js';
import { waitFor } from '../support/wait-for.js';
import { stubServer } from './stub-redis.js';

const engineOf = (server = stubServer(), options = {}) => redisEngine(server.connect(), server.connect(), options);

const connected = async (server = stubServer(), options = {}) => {
  const engine = engineOf(server, options);
  await Promise.resolve();
  return engine;
};

const refusal = Object.assign(new Error('NOPERM'), { name: 'ReplyError' });

// The same tests run with a real server in test/peers.
describe('the engine over Redis', () => {
  const server = stubServer();
  const tests = clusterEngineTests(async () => [await connected(server), await connected(server)]);
  it.each(tests.map(({ name, run }) => [name, run] as const))('%s', (_, run) => run());

  it('is connected while both connections are ready', async () => {
    const own = stubServer();
    const statuses = firstValueFrom(engineOf(own).connected$.pipe(take(4), toArray()));
    await Promise.resolve();
    own.kill();
    own.restart();
    expect(await statuses).toEqual([false, true, false, true]);
  });

  it('sends nothing while it is not connected', async () => {
    const own = stubServer();
    const engine = engineOf(own);
    engine.publish('subject', Buffer.from('early'));
    await Promise.resolve();
    own.kill();
    engine.publish('subject', Buffer.from('late'));
    await expect(engine.request('subject', Buffer.from('?'), 10)).rejects.toThrow();
    expect(own.commands).not.toContain('publish');
  });

  it('ignores the failure of a message', async () => {
    const own = stubServer();
    const engine = await connected(own);
    engine.publish('subject', Buffer.from('x'));
    own.kill();
    await new Promise(setImmediate);
    expect(own.commands).toEqual([]);
  });

  it('subscribes again after a reconnect', async () => {
    const own = stubServer();
    const engine = await connected(own);
    const next = firstValueFrom(engine.subscribe('subject'));
    own.kill();
    own.restart();
    await new Promise(setImmediate);
    engine.publish('subject', Buffer.from('after'));
    expect(Buffer.from(await next).toString()).toBe('after');
  });

  it('reports a refused subscription', async () => {
    const own = stubServer();
    const engine = await connected(own);
    own.refusal = refusal;
    await expect(firstValueFrom(engine.subscribe('subject'))).rejects.toBe(refusal);
    await expect(firstValueFrom(engine.respond('subject', (data) => data))).rejects.toBe(refusal);
    await expect(engine.request('subject', Buffer.from('?'), 1_000)).rejects.toBe(refusal);
  });

  it('subscribes anew if a subscriber subscribes again because of a refusal', async () => {
    const own = stubServer();
    const engine = await connected(own);
    own.refusal = refusal;
    const again = new Promise<Uint8Array>((resolve, reject) => {
      const error = () => {
        own.refusal = undefined;
        engine.subscribe('subject').subscribe({ next: resolve, error: reject });
      };
      engine.subscribe('subject').subscribe({ error });
    });
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    engine.publish('subject', Buffer.from('after'));
    expect(Buffer.from(await again).toString()).toBe('after');
  });

  it.each(['LOADING Redis is loading the dataset in memory', 'BUSY Redis is busy running a script'])(
    'subscribes later if Redis answers %s',
    async (message) => {
      const own = stubServer();
      const engine = await connected(own);
      own.refusal = Object.assign(new Error(message), { name: 'ReplyError' });
      const ended = engine.subscribe('ended').subscribe();
      const next = firstValueFrom(engine.subscribe('subject'));
      await new Promise(setImmediate);
      ended.unsubscribe();
      own.refusal = undefined;
      await waitFor(() => own.commands.filter((name) => name === 'subscribe').length >= 3);
      await new Promise(setImmediate);
      engine.publish('subject', Buffer.from('after'));
      expect(Buffer.from(await next).toString()).toBe('after');
      expect(own.commands.filter((name) => name === 'subscribe')).toHaveLength(3);
    },
  );

  it('puts the prefix before keys and channels', async () => {
    const own = stubServer();
    const [one, other] = [await connected(own, { prefix: 'a.' }), await connected(own, { prefix: 'b.' })];
    await one.compareAndSet('key', 'one', undefined);
    expect(await other.read('key')).toBeUndefined();
    expect(await connected(own).then((engine) => engine.read('a.key'))).toMatchObject({ value: 'one' });
  });

  it.each(['', 'team-a.', 'team-a:', 'app/team_a:'])('accepts the prefix "%s"', (prefix) => {
    expect(() => engineOf(stubServer(), { prefix })).not.toThrow();
  });

  it.each<[string, string, (server: ReturnType<typeof stubServer>) => unknown]>([
    ['a space in the prefix', 'prefix', (server) => engineOf(server, { prefix: 'team a.' })],
    ['a wildcard in the prefix', 'prefix', (server) => engineOf(server, { prefix: 'team.*' })],
    ['a prefix of 81 characters', 'prefix', (server) => engineOf(server, { prefix: 'a'.repeat(81) })],
    ['a prefix that is no text', 'prefix', (server) => engineOf(server, { prefix: 5 })],
    ['an unknown option', 'bucket', (server) => engineOf(server, { bucket: 'a' })],
    ['no connection', 'commands', (server) => redisEngine(undefined as never, server.connect())],
    [
      'one connection for both',
      'subscriber',
      (server) => {
        const connection = server.connect();
        return redisEngine(connection, connection);
      },
    ],
    [
      'a Redis Cluster',
      'subscriber',
      (server) => redisEngine(server.connect(), Object.assign(server.connect(), { isCluster: true })),
    ],
    [
      'keyPrefix, which precedes no channels',
      'commands.keyPrefix',
      (server) => redisEngine(Object.assign(server.connect(), { options: { keyPrefix: 'a:' } }), server.connect()),
    ],
  ])('throws invalid-options from the call for %s', (_, option, create) => {
    const own = stubServer();
    expect(() => create(own)).toThrow(expect.objectContaining({ code: 'invalid-options', option }));
    expect(own.commands).toEqual([]);
  });

  it('reads a request without the name of a channel', async () => {
    const own = stubServer();
    const engine = await connected(own);
    const asked = new Promise<string>((resolve) => {
      engine
        .respond('owner', (data) => {
          resolve(Buffer.from(data).toString());
          return data;
        })
        .subscribe();
    });
    await new Promise(setImmediate);
    engine.publish('owner', Buffer.from(''));
    expect(await asked).toBe('');
  });
});

const bytes = (text: string): Buffer => Buffer.from(text);
const textOf = (data: Uint8Array): string => Buffer.from(data).toString();

/** The options of the client that change what an engine receives, or when. */
const clientOptions = {
  lazyConnect: { lazyConnect: true },
  'lazyConnect without an offline queue': { lazyConnect: true, enableOfflineQueue: false },
  'enableOfflineQueue: false': { enableOfflineQueue: false },
  enableAutoPipelining: { enableAutoPipelining: true },
  'enableReadyCheck: false': { enableReadyCheck: false },
  'autoResubscribe: false': { autoResubscribe: false },
  'maxRetriesPerRequest: 0': { maxRetriesPerRequest: 0 },
  stringNumbers: { stringNumbers: true },
  'protocol: 2': { protocol: 2 },
  'another database': { db: 5 },
};

// What only this engine does is in redis-engine.test.ts, with a server in memory.
describeServer('redis', ({ broker, connect, defer }) => {
  const open = (options: object = {}): Redis => {
    const connection = new Redis(broker().port, '127.0.0.1', { retryStrategy: () => 100, ...options });
    connection.on('error', () => undefined);
    defer(() => connection.disconnect());
    return connection;
  };
  const connected = async (engine: ClusterEngine): Promise<ClusterEngine> => {
    await firstValueFrom(engine.connected$.pipe(filter(Boolean)));
    return engine;
  };

  it.each(Object.entries(clientOptions))('passes all tests of an engine with %s', async (_, options) => {
    const openEngine = () => connected(redisEngine(open(options), open(options)));
    const engines = [await openEngine(), await openEngine()] as const;
    await Promise.all(clusterEngineTests(() => engines).map(({ run }) => run()));
  });

  it('keeps the subscriptions of an engine when another engine of the same connections ends', async () => {
    const connections = [open(), open()] as const;
    const [before, after] = [await connected(redisEngine(...connections)), redisEngine(...connections)];
    const old = before.subscribe('successor').subscribe();
    const received$ = new Subject<Uint8Array>();
    const received = firstValueFrom(received$);
    after.subscribe('successor').subscribe(received$);
    const responding = before.respond('owner', (data) => data).subscribe();
    after.respond('owner', (data) => data).subscribe();
    old.unsubscribe();
    responding.unsubscribe();
    // The answer of the server comes after the end of the old subscriptions.
    expect(await after.request('owner', bytes('?'), 20_000)).toMatchObject({ type: 'reply' });
    (await connect()).publish('successor', bytes('message'));
    expect(textOf(await received)).toBe('message');
  });

  it('subscribes again for one of two replicas on the same connections: a channel that died in silence is alive for both', async () => {
    const subscriber = open();
    const [one, other] = [redisEngine(open(), subscriber), redisEngine(open(), subscriber)];
    await Promise.all([connected(one), connected(other)]);
    const [ofOne$, ofOther$] = [new Subject<Uint8Array>(), new Subject<Uint8Array>()];
    const received = Promise.all([firstValueFrom(ofOne$), firstValueFrom(ofOther$)]);
    const first = one.subscribe('dead').subscribe();
    other.subscribe('dead').subscribe(ofOther$);
    expect(await subscriber.unsubscribe('dead')).toBe(0);
    // What a follower without messages does.
    first.unsubscribe();
    one.subscribe('dead').subscribe(ofOne$);
    const server = open();
    await waitFor(async () => (await server.publish('dead', 'message')) === 1);
    expect((await received).map(textOf)).toEqual(['message', 'message']);
  });

  it('has later revisions after its data was deleted', async () => {
    const engine = await connect();
    const becomes = (expected: boolean) =>
      firstValueFrom(engine.connected$.pipe(filter((isConnected) => isConnected === expected)));
    const before = (await engine.compareAndSet('wiped', 'before', undefined)) ?? 0;
    await broker().kill();
    await becomes(false);
    broker().wipe();
    await broker().start();
    await becomes(true);
    expect(await engine.read('wiped')).toBeUndefined();
    expect(await engine.compareAndSet('wiped', 'after', undefined)).toBeGreaterThan(before);
  });
});
