import type { Redis } from 'ioredis';
import type { ClusterEngine } from '../cluster/engine.js';
import { type EngineLogOptions, engineLog, engineLogRules } from '../log/engine-log.js';
import type { FeedLog } from '../log/feed-log.js';
import { StoreAway } from '../log/line-store.js';
import { isError } from '../protocol/type-guards.js';
import { checkRequired, validated } from '../protocol/validate.js';
import { aConnection, isPassing, redisEngine } from './redis-engine.js';

/** The options of {@link redisLog}. */
export type RedisLogOptions = EngineLogOptions;

/**
 * Opens a log in a stream of Redis. It works like `feedLog`, but with readers and writers on several machines.
 *
 * The log `market` is the stream `rtf:log:{market}`, which the first `append` creates; its cursors are hashes such as
 * `rtf:log:{market}:cursor:db`. How safe a record is depends on the server: with `appendonly yes` and `appendfsync always`
 * it's on the disk before it's confirmed, without a file it ends with the server. Set `maxmemory-policy` to `noeviction`,
 * or the server may remove the log.
 *
 * The log opens a second connection with the same options, because a connection with subscriptions accepts no commands.
 * It ends with yours, which the log doesn't close: before you do, await `log.close()`.
 *
 * @param redis - a connection of `ioredis` to a primary server; Redis Cluster isn't supported
 * @param options - see {@link RedisLogOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 * import { redisLog } from 'rx-trade-feed/redis';
 *
 * const redis = new Redis(6379);
 * const log = redisLog(redis, { name: 'market', maxBytes: 1_000_000_000 });
 *
 * tradeFeedEvents$('market').pipe(log.append()).subscribe();
 * ```
 */
export const redisLog = (redis: Redis, options: RedisLogOptions): FeedLog => {
  const own = validated(options, engineLogRules);
  checkRequired({ name: own.name, redis }, { name: engineLogRules.name, redis: aConnection });
  const path = `rtf:log:{${own.name}}`;
  const cursorKey = (consumer: string): string => `${path}:cursor:${consumer}`;
  const isClosed = (): boolean => redis.status === 'end';
  return engineLog({ engine: engineOf(redis), connection: redis, path, isAway, isClosed, cursorKey }, own);
};

/** How much later than announced a client may try to connect again, in ms. */
const lateMs = 1_000;

/** All logs of a connection share one for subscriptions. */
const engines = new WeakMap<Redis, ClusterEngine>();

const engineOf = (redis: Redis): ClusterEngine => {
  const known = engines.get(redis);
  if (known !== undefined) return known;
  const { retryStrategy } = redis.options;
  let dueAt = Infinity;
  redis.on('reconnecting', (ms: number) => (dueAt = performance.now() + ms + lateMs));
  // A client that you disconnect while it reconnects doesn't say so: only its next attempt doesn't come.
  const isEnded = (): boolean => redis.status === 'reconnecting' && performance.now() > dueAt;
  const subscriber = redis.duplicate({
    lazyConnect: true,
    retryStrategy: (times: number) => (isEnded() ? null : retryStrategy?.(times)),
  });
  // Its failures end the calls that need it.
  subscriber.on('error', () => undefined);
  redis.once('end', () => subscriber.disconnect());
  const engine = redisEngine(redis, subscriber);
  engines.set(redis, engine);
  return engine;
};

/** Whether a server may answer the same command later: nothing has arrived, or it loads its data. */
const isAway = (error: unknown): boolean =>
  error instanceof StoreAway || (isError(error) && (error.name !== 'ReplyError' || isPassing.test(error.message)));
