import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import { type NatsConnection, RequestError } from '@nats-io/transport-node';
import { BehaviorSubject, distinctUntilChanged, from, Observable } from 'rxjs';
import type { ClusterEngine } from '../cluster/engine/cluster-engine.js';

/** The options of {@link natsEngine}. */
export interface NatsEngineOptions {
  /** The name of the key-value bucket, which is created if it does not exist. @defaultValue `rx-trade-feed` */
  readonly bucket?: string | undefined;
  /** Precedes the names of all keys and subjects, for example `team-a.`. @defaultValue none */
  readonly prefix?: string | undefined;
  /** How many NATS servers store the bucket: 1, 3 or 5. @defaultValue 1 */
  readonly replicas?: number | undefined;
}

/**
 * Creates an engine for a cluster over NATS with JetStream. The key is in a key-value bucket, messages use core NATS.
 *
 * The connection must reconnect without a limit. A ping interval of a few seconds detects a server that does not answer. The engine does not
 * close the connection.
 *
 * @param connection - an open connection of `@nats-io/transport-node`
 * @param options - see {@link NatsEngineOptions}
 * @example
 * ```ts
 * import { connect } from '@nats-io/transport-node';
 * import { createFeedCluster } from 'rx-trade-feed/cluster';
 * import { natsEngine } from 'rx-trade-feed/nats';
 *
 * const connection = await connect({ servers: '127.0.0.1:4222', maxReconnectAttempts: -1, pingInterval: 2_000 });
 * const cluster = createFeedCluster('market', { engine: natsEngine(connection), account: 'main' });
 * ```
 */
export const natsEngine = (
  connection: NatsConnection,
  { bucket = 'rx-trade-feed', prefix = '', replicas = 1 }: NatsEngineOptions = {},
): ClusterEngine => {
  const connected$ = new BehaviorSubject(!connection.isClosed());
  from(connection.status()).subscribe({
    next: ({ type }) => {
      if (type === 'disconnect' || type === 'close') connected$.next(false);
      if (type === 'reconnect') connected$.next(true);
    },
    complete: () => connected$.next(false),
  });

  let opening: Promise<KV> | undefined;
  // A server that has lost its data has no bucket, so each failure creates it again.
  const access = async <T>(use: (store: KV) => Promise<T>): Promise<T> => {
    try {
      // Only the leader of the bucket reads the newest value for certain.
      opening ??= new Kvm(connection).create(bucket, { history: 1, replicas, allow_direct: false });
      return await use(await opening);
    } catch (error) {
      opening = undefined;
      throw error;
    }
  };

  return {
    connected$: connected$.pipe(distinctUntilChanged()),
    read: (key) =>
      access(async (store) => {
        const entry = await store.get(prefix + key);
        return entry?.operation === 'PUT' ? { value: entry.string(), revision: entry.revision } : undefined;
      }),
    compareAndSet: (key, value, expected) =>
      access(async (store) => {
        const name = prefix + key;
        try {
          return await (expected === undefined ? store.create(name, value) : store.update(name, value, expected));
        } catch (error) {
          if (isConflict(error)) return undefined;
          throw error;
        }
      }),
    publish: (subject, data) => {
      // The client stores messages without a limit while it is not connected.
      if (connected$.value && !connection.isClosed() && !connection.isDraining())
        connection.publish(prefix + subject, data);
    },
    subscribe: (subject) =>
      new Observable((subscriber) => {
        const subscription = connection.subscribe(prefix + subject, {
          callback: (error, message) => (error ? subscriber.error(error) : subscriber.next(message.data)),
        });
        return () => subscription.unsubscribe();
      }),
    request: async (subject, data, timeoutMs) => {
      try {
        const { data: reply } = await connection.request(prefix + subject, data, { timeout: timeoutMs });
        return { type: 'reply', data: reply };
      } catch (error) {
        if (error instanceof RequestError && error.isNoResponders()) return { type: 'no-responders' };
        throw error;
      }
    },
    respond: (subject, answer) =>
      new Observable((subscriber) => {
        const subscription = connection.subscribe(prefix + subject, {
          callback: (error, message) => {
            if (error) subscriber.error(error);
            else message.respond(answer(message.data));
          },
        });
        return () => subscription.unsubscribe();
      }),
  };
};

const isConflict = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence;
