import { type KV, Kvm } from '@nats-io/kv';
import { type Msg, type NatsConnection, PermissionViolationError, RequestError } from '@nats-io/transport-node';
import {
  BehaviorSubject,
  distinctUntilChanged,
  filter,
  from,
  ignoreElements,
  map,
  Observable,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import type { ClusterEngine, EngineFailure } from '../cluster/engine.js';
import { lineHeaderBytes, NatsLine } from './line-store.js';
import { isConflict } from './errors.js';
import { aName, checkRequired, invalidOption, objectWith, type Rule, validated } from '../protocol/validate.js';

/** The options of {@link natsEngine}. */
export interface NatsEngineOptions {
  /**
   * The name of the key-value bucket, created if it doesn't exist: letters, digits, `-` and `_`.
   *
   * @defaultValue `rx-trade-feed`
   */
  readonly bucket?: string | undefined;
  /**
   * Prefix for all keys and subjects, for example `team-a.`: letters, digits, `-`, `_`, and dots between them.
   *
   * @defaultValue none
   */
  readonly prefix?: string | undefined;
  /** How many NATS servers store the bucket: 1, 3 or 5. @defaultValue 1 */
  readonly replicas?: number | undefined;
}

const defaults = Object.freeze({ bucket: 'rx-trade-feed', prefix: '', replicas: 1 });

export const aReplicaCount: Rule = { allowed: '1, 3 or 5', is: (v) => v === 1 || v === 3 || v === 5 };

const rules: Readonly<Record<keyof NatsEngineOptions, Rule>> = {
  bucket: aName,
  prefix: {
    allowed: "at most 80 letters, digits, - and _ with single dots between them, such as 'team-a.'",
    is: (v) => typeof v === 'string' && v.length <= 80 && /^([\w-]+\.)*[\w-]*$/.test(v),
  },
  replicas: aReplicaCount,
};

/**
 * Creates an engine for a cluster over NATS with JetStream. The key is in a key-value bucket; messages use core NATS.
 *
 * Make the connection reconnect forever, even if the server refuses the password for a while (`ignoreAuthErrorAbort`),
 * and set a ping interval and a timeout of a few seconds to detect a dead server. The engine doesn't close the
 * connection.
 *
 * @param connection - an open connection of `@nats-io/transport-node`
 * @param options - see {@link NatsEngineOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself: also for a connection with `noEcho`
 * @example
 * ```ts
 * import { connect } from '@nats-io/transport-node';
 * import { createFeedCluster } from 'rx-trade-feed/cluster';
 * import { natsEngine } from 'rx-trade-feed/nats';
 *
 * const connection = await connect({
 *   servers: '127.0.0.1:4222',
 *   maxReconnectAttempts: -1,
 *   ignoreAuthErrorAbort: true,
 *   pingInterval: 2_000,
 *   timeout: 2_000,
 * });
 * const cluster = createFeedCluster('market', {
 *   engine: natsEngine(connection),
 *   account: 'main',
 * });
 * ```
 */
export const natsEngine = (connection: NatsConnection, options: NatsEngineOptions = {}): ClusterEngine => {
  checkConnection(connection);
  const { bucket, prefix, replicas } = { ...defaults, ...validated(options, rules) };
  const connected$ = new BehaviorSubject(isConnected(connection));
  const failures$ = new Subject<EngineFailure>();
  from(connection.status()).subscribe({
    next: (status) => {
      if (status.type === 'disconnect' || status.type === 'close') connected$.next(false);
      if (status.type === 'reconnect') connected$.next(true);
      if (status.type !== 'error') return;
      const { error } = status;
      failures$.next({ operation: error instanceof PermissionViolationError ? 'publish' : 'connect', error });
    },
    complete: () => connected$.next(false),
  });
  const closed$ = from(connection.closed()).pipe(
    tap((reason) => {
      connected$.next(false);
      if (reason) throw reason;
    }),
  );
  // A disconnected client buffers messages without a limit.
  const canPublish = (): boolean => connected$.value && !connection.isClosed() && !connection.isDraining();

  return {
    connected$: connected$.pipe(distinctUntilChanged(), takeUntil(closed$)),
    // What the server refuses to a call, the call reports itself.
    failures$: failures$.pipe(filter(({ error }) => !isOfCall(error))),
    maxMessageBytes: () => connection.info && connection.info.max_payload - lineHeaderBytes,
    // Only the bucket's leader is sure to read the newest value.
    ...storeIn(prefix, () => new Kvm(connection).create(bucket, { history: 1, replicas, allow_direct: false })),
    ...messagesOver(connection, prefix, canPublish),
    line: (spec) => new NatsLine({ ...spec, connection, isConnected: canPublish, prefix, replicas }),
  };
};

/** Accesses the keys of a bucket. A server may lose its data and the bucket with it, so each failure reopens it. */
const storeIn = (prefix: string, open: () => Promise<KV>): Pick<ClusterEngine, 'read' | 'compareAndSet'> => {
  let opening: Promise<KV> | undefined;
  const access = async <T>(use: (store: KV) => Promise<T>): Promise<T> => {
    try {
      opening ??= open();
      return await use(await opening);
    } catch (error) {
      opening = undefined;
      throw error;
    }
  };
  return {
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
  };
};

const messagesOver = (
  connection: NatsConnection,
  prefix: string,
  canPublish: () => boolean,
): Pick<ClusterEngine, 'publish' | 'subscribe' | 'request' | 'respond'> => {
  const messages$ = (subject: string): Observable<Msg> =>
    new Observable((subscriber) => {
      const subscription = connection.subscribe(prefix + subject, {
        callback: (error, message) => (error ? subscriber.error(error) : subscriber.next(message)),
      });
      return () => subscription.unsubscribe();
    });
  return {
    publish: (subject, data) => {
      if (canPublish()) connection.publish(prefix + subject, data);
    },
    subscribe: (subject) => messages$(subject).pipe(map(({ data }) => data)),
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
      messages$(subject).pipe(
        tap((message) => {
          const reply = answer(message.data);
          // A connection that's draining still receives requests.
          if (canPublish()) message.respond(reply);
        }),
        ignoreElements(),
      ),
  };
};

export const checkConnection = (connection: NatsConnection): void => {
  checkRequired({ connection }, { connection: objectWith('status', 'an open connection: await connect(…)') });
  // The client's type hides its options.
  const { options } = connection as { readonly options?: { readonly noEcho?: boolean } };
  if (options?.noEcho === true)
    throw invalidOption('noEcho', 'left out of the connection: an owner checks that its own messages arrive');
};

const isConnected = (connection: NatsConnection): boolean => {
  // The client's type hides its state. The server info stays until the client tries to reconnect.
  const { protocol } = connection as { readonly protocol?: { readonly connected?: boolean } };
  return !connection.isClosed() && connection.info !== undefined && protocol?.connected !== false;
};

const isOfCall = (error: unknown): boolean =>
  error instanceof PermissionViolationError && (error.operation === 'subscription' || /^[$_]/.test(error.subject));
