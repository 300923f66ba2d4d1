import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { combineLatest, defer, distinctUntilChanged, firstValueFrom, fromEvent, map, merge, Observable } from 'rxjs';
import { startWith, timeout } from 'rxjs';
import type { ClusterEngine, Reply } from '../cluster/engine/cluster-engine.js';
import { createChannels } from './channels.js';
import { readRequest, writeRequest } from './request-message.js';

/** The options of {@link redisEngine}. */
export interface RedisEngineOptions {
  /** Precedes the names of all keys and channels, for example `team-a.`. @defaultValue none */
  readonly prefix?: string | undefined;
}

/**
 * Creates an engine for a cluster over Redis. The key is a hash that a script replaces, messages use Pub/Sub.
 *
 * Both connections must be to the same primary server; Redis Cluster is not supported. The engine does not close them.
 *
 * @param commands - a connection of `ioredis`
 * @param subscriber - another connection, because a connection with subscriptions accepts no commands
 * @param options - see {@link RedisEngineOptions}
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { createFeedCluster } from 'rx-trade-feed/cluster';
 * import { redisEngine } from 'rx-trade-feed/redis';
 *
 * const [commands, subscriber] = [new Redis(6379), new Redis(6379)];
 * const cluster = createFeedCluster('market', { engine: redisEngine(commands, subscriber), account: 'main' });
 * ```
 */
export const redisEngine = (
  commands: Redis,
  subscriber: Redis,
  { prefix = '' }: RedisEngineOptions = {},
): ClusterEngine => {
  const channels = createChannels(subscriber);

  // Without a connection the client would store commands.
  const publish = async (channel: string, data: Uint8Array): Promise<number | undefined> =>
    commands.status === 'ready' ? commands.publish(channel, asBuffer(data)) : undefined;

  return {
    connected$: defer(() => combineLatest([isReady$(commands), isReady$(subscriber)])).pipe(
      map((areReady) => areReady.every(Boolean)),
      distinctUntilChanged(),
    ),
    read: async (key) => {
      const [value, revision] = await commands.hmget(prefix + key, 'value', 'revision');
      return typeof value === 'string' ? { value, revision: Number(revision) } : undefined;
    },
    compareAndSet: async (key, value, expected) => {
      const revision = await commands.eval(replaceScript, 1, prefix + key, expected ?? '', value);
      return revision === null ? undefined : Number(revision);
    },
    publish: (subject, data) => void publish(prefix + subject, data).catch(ignoreFailure),
    subscribe: (subject) => new Observable((each) => channels.listen(prefix + subject, each)),
    request: (subject, data, timeoutMs) => {
      const channel = prefix + subject;
      const replyTo = `${channel}.reply.${randomUUID()}`;
      const reply$ = new Observable<Reply>((each) =>
        channels.listen(replyTo, {
          next: (reply) => each.next({ type: 'reply', data: reply }),
          error: (error) => each.error(error),
          ready: () =>
            void publish(channel, writeRequest({ replyTo, data })).then(
              (receivers) => receivers === 0 && each.next({ type: 'no-responders' }),
              (error: unknown) => each.error(error),
            ),
        }),
      );
      return firstValueFrom(reply$.pipe(timeout(timeoutMs)));
    },
    respond: (subject, answer) =>
      new Observable((each) =>
        channels.listen(prefix + subject, {
          next: (request) => {
            const { replyTo, data } = readRequest(request);
            void publish(replyTo, answer(data)).catch(ignoreFailure);
          },
          error: (error) => each.error(error),
        }),
      ),
  };
};

const isReady$ = (connection: Redis): Observable<boolean> =>
  merge(fromEvent(connection, 'ready'), fromEvent(connection, 'close')).pipe(
    startWith(undefined),
    map(() => connection.status === 'ready'),
  );

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

// A message may be lost: then the next one shows it.
const ignoreFailure = (): undefined => undefined;

/**
 * Replaces the value if the revision is the expected one. Revisions are times in microseconds, so that a server that has lost its data never uses
 * one again.
 */
const replaceScript = `
local revision = redis.call('HGET', KEYS[1], 'revision')
if (revision or '') ~= ARGV[1] then return false end
local time = redis.call('TIME')
local next = math.max(time[1] * 1000000 + time[2], (tonumber(revision) or 0) + 1)
redis.call('HSET', KEYS[1], 'revision', string.format('%.0f', next), 'value', ARGV[2])
return next
`;
