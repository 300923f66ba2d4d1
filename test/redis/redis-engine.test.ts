/** @lane brokers */
import { describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { firstValueFrom, Subject } from 'rxjs';
import type { ClusterEngine } from '../../src/cluster/index.js';
import { redisEngine } from '../../src/redis/index.js';
import { clusterEngineTests } from '../../src/testing/index.js';
import { becomes, describeServer, type RealServer } from '../cluster/support/real-server.js';
import { itInCi } from '../support/cases.js';
import { waitFor } from '../support/wait-for.js';

/** A connection that never connects. */
const idle = (fields: object = {}): Redis => Object.assign(new Redis({ lazyConnect: true }), fields);

describe('redisEngine', () => {
  it.each(['', 'team-a.', 'team-a:', 'app/team_a:'])('accepts the prefix "%s"', (prefix) => {
    expect(() => redisEngine(idle(), idle(), { prefix })).not.toThrow();
  });

  const [one, other] = [idle(), idle()];
  const call = (): void => undefined;
  const ofNats = { status: call, subscribe: call, publish: call, request: call };
  it.each<[string, string, () => unknown]>([
    ['a space in the prefix', 'prefix', () => redisEngine(one, other, { prefix: 'team a.' })],
    ['a wildcard in the prefix', 'prefix', () => redisEngine(one, other, { prefix: 'team.*' })],
    ['a prefix of 81 characters', 'prefix', () => redisEngine(one, other, { prefix: 'a'.repeat(81) })],
    ['a prefix that is no text', 'prefix', () => redisEngine(one, other, { prefix: 5 as never })],
    ['an unknown option', 'bucket', () => redisEngine(one, other, { bucket: 'a' } as never)],
    ['no connection', 'commands', () => redisEngine(undefined as never, other)],
    ['a connection of NATS', 'commands', () => redisEngine(ofNats as never, other)],
    ['one connection for both', 'subscriber', () => redisEngine(one, one)],
    ['a Redis Cluster', 'subscriber', () => redisEngine(one, idle({ isCluster: true }))],
    [
      'keyPrefix, which precedes no channels',
      'commands.keyPrefix',
      () => redisEngine(idle({ options: { keyPrefix: 'a:' } }), other),
    ],
  ])('throws invalid-options from the call for %s', (_, option, create) => {
    expect(create).toThrow(expect.objectContaining({ code: 'invalid-options', option }));
    expect([one.status, other.status]).toEqual(['wait', 'wait']);
  });
});

const bytes = (text: string): Buffer => Buffer.from(text);
const textOf = (data: Uint8Array): string => Buffer.from(data).toString();

/** The options of the client that change what an engine receives, or when. */
const clientOptions: readonly object[] = [
  { lazyConnect: true, enableOfflineQueue: false, stringNumbers: true, db: 5 },
  { lazyConnect: true, enableAutoPipelining: true, enableReadyCheck: false, protocol: 2 },
  { autoResubscribe: false, maxRetriesPerRequest: 0, enableOfflineQueue: false },
];

const connected = async (engine: ClusterEngine): Promise<ClusterEngine> => {
  await becomes(engine);
  return engine;
};

const openEngines = async (server: RealServer, prefix?: string) => {
  const connections = [server.redis(), server.redis()] as const;
  return [await connected(redisEngine(...connections, { prefix })), redisEngine(...connections, { prefix })] as const;
};

describeServer('redis', openEngines, (server) => {
  const open: RealServer['redis'] = (options) => server().redis(options);

  itInCi.each(clientOptions)('passes all tests of an engine with %j', async (options) => {
    const openEngine = () => connected(redisEngine(open(options), open(options)));
    const engines = [await openEngine(), await openEngine()] as const;
    await Promise.all(clusterEngineTests(() => engines).map(({ run }) => run()));
  });

  itInCi('revives a silently dead channel for both replicas of a connection when one subscribes again', async () => {
    const subscriber = open();
    const [one, other] = [redisEngine(open(), subscriber), redisEngine(open(), subscriber)];
    await Promise.all([connected(one), connected(other)]);
    const [ofOne$, ofOther$] = [new Subject<Uint8Array>(), new Subject<Uint8Array>()];
    const received = Promise.all([firstValueFrom(ofOne$), firstValueFrom(ofOther$)]);
    const first = one.subscribe('dead').subscribe();
    other.subscribe('dead').subscribe(ofOther$);
    expect(await subscriber.unsubscribe('dead')).toBe(0);
    // A follower does this when no messages arrive.
    first.unsubscribe();
    one.subscribe('dead').subscribe(ofOne$);
    const publisher = open();
    await waitFor(async () => (await publisher.publish('dead', 'message')) === 1);
    expect((await received).map(textOf)).toEqual(['message', 'message']);
  });

  /** Waits until the server has handled an engine's subscriptions. */
  const settled = (engine: ClusterEngine): Promise<unknown> => engine.request('settled', bytes(''), 20_000);

  itInCi('subscribes again when a refused subscriber retries', async () => {
    const subscriber = open();
    const engine = await connected(redisEngine(open(), subscriber));
    const refusal = Object.assign(new Error('NOPERM'), { name: 'ReplyError' });
    jest.spyOn(subscriber, 'subscribe').mockRejectedValueOnce(refusal);
    const received$ = new Subject<Uint8Array>();
    const received = firstValueFrom(received$);
    const error = (thrown: unknown): void => {
      expect(thrown).toBe(refusal);
      engine.subscribe('again').subscribe(received$);
    };
    engine.subscribe('again').subscribe({ error });
    await waitFor(() => jest.mocked(subscriber.subscribe).mock.calls.length > 1);
    await settled(engine);
    engine.publish('again', bytes('after'));
    expect(textOf(await received)).toBe('after');
  });

  itInCi.each(['LOADING Redis is loading the dataset in memory', 'BUSY Redis is busy running a script'])(
    'subscribes later if Redis answers %s, but not to a channel without listeners',
    async (message) => {
      const subscriber = open();
      const engine = await connected(redisEngine(open(), subscriber));
      const busy = Object.assign(new Error(message), { name: 'ReplyError' });
      const subscribe = jest.spyOn(subscriber, 'subscribe').mockRejectedValueOnce(busy).mockRejectedValueOnce(busy);
      const ended = engine.subscribe('ended').subscribe();
      const received = firstValueFrom(engine.subscribe('busy'));
      ended.unsubscribe();
      const channels = () => subscribe.mock.calls.map(([channel]) => String(channel));
      await waitFor(() => channels().length >= 3);
      await settled(engine);
      engine.publish('busy', bytes('after'));
      expect(textOf(await received)).toBe('after');
      expect(channels().slice(0, 3)).toEqual(['ended', 'busy', 'busy']);
    },
  );

  itInCi('reads a request without the name of a channel', async () => {
    const engine = await server().connect();
    const asked: string[] = [];
    const answer = (data: Uint8Array): Uint8Array => {
      asked.push(textOf(data));
      return data;
    };
    engine.respond('unnamed', answer).subscribe();
    await settled(engine);
    engine.publish('unnamed', bytes(''));
    await waitFor(() => asked.length > 0);
    expect(asked).toEqual(['']);
  });
});
