import type { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import {
  combineLatest,
  defer,
  distinctUntilChanged,
  filter,
  firstValueFrom,
  fromEvent,
  ignoreElements,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  shareReplay,
  Subject,
  takeUntil,
  tap,
  timeout,
  timer,
} from 'rxjs';
import type { ClusterEngine, EngineFailure, Reply } from '../cluster/engine.js';
import { liveSubject } from '../log/line-store.js';
import { isError } from '../protocol/type-guards.js';
import { checkRequired, invalidOption, objectWith, type Rule, validated } from '../protocol/validate.js';
import { answered, asBuffer, RedisLine } from './line-store.js';

/** The options of {@link redisEngine}. */
export interface RedisEngineOptions {
  /** A prefix of all keys and channels: letters, digits, `-`, `_`, `.`, `:` and `/`. @defaultValue none */
  readonly prefix?: string | undefined;
}

const aPrefix: Rule = {
  allowed: "at most 80 letters, digits, -, _, ., : or /, such as 'team-a.'",
  is: (v) => typeof v === 'string' && /^[\w.:/-]{0,80}$/.test(v),
};

/**
 * Creates an engine for a cluster over Redis. The key is a hash that a script replaces; messages use Pub/Sub.
 *
 * Connect both clients to the same primary server; Redis Cluster isn't supported. The engine opens connections with
 * `lazyConnect` when a replica starts, and closes none.
 *
 * @param commands - a connection of `ioredis`
 * @param subscriber - another connection, because a connection with subscriptions accepts no commands
 * @param options - see {@link RedisEngineOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself: also for connections with `keyPrefix`
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { createFeedCluster } from 'rx-trade-feed/cluster';
 * import { redisEngine } from 'rx-trade-feed/redis';
 *
 * const [commands, subscriber] = [new Redis(6379), new Redis(6379)];
 * const cluster = createFeedCluster('market', {
 *   engine: redisEngine(commands, subscriber),
 *   account: 'main',
 * });
 * ```
 */
export const redisEngine = (commands: Redis, subscriber: Redis, options: RedisEngineOptions = {}): ClusterEngine => {
  checkConnections(commands, subscriber);
  const { prefix = '' } = validated(options, { prefix: aPrefix });
  const connections = [commands, subscriber];
  const listen = channelsOf(subscriber);
  const failures$ = new Subject<EngineFailure>();
  const errors$ = merge(...connections.map((each) => fromEvent(each, 'error')));

  /** Returns the number of receivers. A disconnected client would queue the command. */
  const publish = async (channel: string, data: Uint8Array): Promise<number | undefined> => {
    if (commands.status !== 'ready') return undefined;
    const receivers: unknown = await commands.publish(channel, asBuffer(data));
    return Number(receivers); // With `stringNumbers` the client returns a string.
  };
  const send = (channel: string, data: Uint8Array): void =>
    void publish(channel, data).catch((error: unknown) => failures$.next({ operation: 'publish', error }));
  const messages$ = (subject: string) => listen(prefix + subject).pipe(filter((data) => data !== undefined));

  return {
    connected$: defer(
      () =>
        combineLatest(connections.map(isReady$)).pipe(
          map((areReady) => areReady.every(Boolean)),
          distinctUntilChanged(),
          takeUntil(merge(...connections.map(isEnded$))),
        ),
      // Each reader of a log subscribes, and Node warns of many listeners.
    ).pipe(shareReplay({ bufferSize: 1, refCount: true })),
    failures$: merge(failures$, errors$.pipe(map((error) => ({ operation: 'connect' as const, error })))),
    read: async (key) => {
      const [value, revision] = await answered(commands.hmget(prefix + key, 'value', 'revision'));
      return typeof value === 'string' ? { value, revision: Number(revision) } : undefined;
    },
    compareAndSet: async (key, value, expected) => {
      const revision = await commands.eval(replaceScript, 1, prefix + key, expected ?? '', value);
      return revision === null ? undefined : Number(revision);
    },
    publish: (subject, data) => send(prefix + subject, data),
    subscribe: messages$,
    request: (subject, data, timeoutMs) => {
      const channel = prefix + subject;
      const replyTo = `${channel}.reply.${randomUUID()}`;
      const reply$ = listen(replyTo).pipe(
        mergeMap(async (reply): Promise<Reply | undefined> => {
          if (reply !== undefined) return { type: 'reply', data: reply };
          const receivers = await publish(channel, writeRequest(replyTo, data));
          return receivers === 0 ? { type: 'no-responders' } : undefined;
        }),
        filter((reply) => reply !== undefined),
      );
      return firstValueFrom(reply$.pipe(timeout(timeoutMs)));
    },
    respond: (subject, answer) =>
      messages$(subject).pipe(
        map(readRequest),
        tap(({ replyTo, data }) => send(replyTo, answer(data))),
        ignoreElements(),
      ),
    line: (spec) => {
      const key = `${prefix}rtf:${spec.kind}:{${spec.name}}`;
      return new RedisLine({ ...spec, commands, key, channel: prefix + liveSubject(spec) });
    },
  };
};

// A connection of NATS has `subscribe`, too.
export const aConnection = objectWith('hmget', 'a Redis of ioredis');

const checkConnections = (commands: Redis, subscriber: Redis): void => {
  checkRequired({ commands, subscriber }, { commands: aConnection, subscriber: aConnection });
  if (commands === subscriber)
    throw invalidOption('subscriber', "a second connection: one with subscriptions doesn't accept commands");
  for (const [name, { isCluster, options }] of Object.entries({ commands, subscriber })) {
    if (isCluster) throw invalidOption(name, 'a connection to one primary server, not to a Redis Cluster');
    const empty = "empty, because it doesn't apply to channels: use the option `prefix` of redisEngine";
    if (options.keyPrefix) throw invalidOption(`${name}.keyPrefix`, empty);
  }
};

const isReady$ = (connection: Redis): Observable<boolean> => {
  // With `lazyConnect`. The client emits the failure as `error`, which `failures$` reports, and retries.
  if (connection.status === 'wait') connection.connect().catch(() => undefined);
  const changes$ = merge(of('now'), fromEvent(connection, 'ready'), fromEvent(connection, 'close'));
  return changes$.pipe(map(() => connection.status === 'ready'));
};

// After `end` the client doesn't reconnect. Deferred, so that the last state comes first.
const isEnded$ = (connection: Redis): Observable<unknown> =>
  defer(() => (connection.status === 'end' ? timer(0) : fromEvent(connection, 'end')));

/**
 * Replaces the value if the revision is the expected one. Revisions are times in microseconds, so a server that lost
 * its data never reuses one.
 */
const replaceScript = `
local revision = redis.call('HGET', KEYS[1], 'revision')
if (revision or '') ~= ARGV[1] then return false end
local time = redis.call('TIME')
local next = math.max(time[1] * 1000000 + time[2], (tonumber(revision) or 0) + 1)
redis.call('HSET', KEYS[1], 'revision', string.format('%.0f', next), 'value', ARGV[2])
return next
`;

/** Emits a channel's messages, and `undefined` whenever they start arriving, which includes each reconnect. */
type Listen = (channel: string) => Observable<Uint8Array | undefined>;

// Engines on one connection share its channels: unsubscribing counts for the whole connection.
const ofConnection = new WeakMap<Redis, Listen>();

const channelsOf = (subscriber: Redis): Listen => {
  const known = ofConnection.get(subscriber);
  if (known) return known;
  const channels = new Map<string, Subject<Uint8Array | undefined>>();

  const subscribe = (channel: string): void =>
    void subscriber.subscribe(channel).then(
      () => channels.get(channel)?.next(undefined),
      (error: unknown) => {
        // If the connection is lost, the next one subscribes again.
        if (!isError(error) || error.name !== 'ReplyError') return;
        const messages$ = channels.get(channel);
        if (isPassing.test(error.message))
          return void setTimeout(() => channels.has(channel) && subscribe(channel), retryMs).unref();
        channels.delete(channel);
        messages$?.error(error);
      },
    );

  subscriber.on('messageBuffer', (channel: Buffer, data: Buffer) => channels.get(channel.toString())?.next(data));
  // The client forgets subscriptions that stay unconfirmed for a while.
  subscriber.on('ready', () => [...channels.keys()].forEach(subscribe));

  const listen: Listen = (channel) =>
    new Observable((listener) => {
      const messages$ = channels.get(channel) ?? new Subject();
      channels.set(channel, messages$);
      listener.add(messages$.subscribe(listener));
      // Even if the channel has listeners: its subscription may have died silently, and renewing it costs nothing.
      subscribe(channel);
      listener.add(() => {
        if (messages$.observed || channels.get(channel) !== messages$) return;
        channels.delete(channel);
        // Fails on a lost connection, which ends the subscription anyway and shows in `connected$`.
        subscriber.unsubscribe(channel).catch(() => undefined);
      });
    });
  ofConnection.set(subscriber, listen);
  return listen;
};

/** How long Redis gets to load its data, finish a slow script, or reach its primary, in ms. */
const retryMs = 500;
// Redis answers every command like this, so reads and writes report it.
export const isPassing = /^(LOADING|BUSY|MASTERDOWN|TRYAGAIN)\b/;

/** Writes a request, which Redis lacks: the length of the reply channel's name, the name, and the data. */
const writeRequest = (replyTo: string, data: Uint8Array): Buffer => {
  const name = Buffer.from(replyTo);
  return Buffer.concat([Buffer.from([name.byteLength >> 8, name.byteLength & 0xff]), name, data]);
};

const readRequest = (bytes: Uint8Array) => {
  const message = asBuffer(bytes);
  const end = 2 + (message.byteLength < 2 ? 0 : message.readUInt16BE(0));
  return { replyTo: message.toString('utf8', 2, end), data: message.subarray(end) };
};
