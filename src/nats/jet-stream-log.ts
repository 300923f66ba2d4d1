import type { NatsConnection } from '@nats-io/transport-node';
import { type EngineLogOptions, engineLog, engineLogRules } from '../log/engine-log.js';
import type { FeedLog } from '../log/feed-log.js';
import { checkRequired, validated } from '../protocol/validate.js';
import { isAway } from './errors.js';
import { aReplicaCount, natsEngine } from './nats-engine.js';

/** The options of {@link jetStreamLog}. */
export interface JetStreamLogOptions extends EngineLogOptions {
  /** How many NATS servers store the log and its cursors: 1, 3 or 5. @defaultValue 1 */
  readonly replicas?: number | undefined;
}

/**
 * Opens a log in a stream of NATS JetStream. It works like `feedLog`, but with readers and writers on several machines.
 *
 * The log `market` is the stream `RTF_LOG_market`, which the first `append` creates; its cursors are in the key-value
 * bucket `rtf-cursors`. The server stores each record once, in order and without a hole, whatever happens to it, to the
 * network and to the writers. Set up the connection as for {@link natsEngine}. The log doesn't close it: before you do,
 * await `log.close()`.
 *
 * @param connection - an open connection of `@nats-io/transport-node`
 * @param options - see {@link JetStreamLogOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { connect } from '@nats-io/transport-node';
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 * import { jetStreamLog } from 'rx-trade-feed/nats';
 *
 * const connection = await connect({
 *   servers: '127.0.0.1:4222',
 *   maxReconnectAttempts: -1,
 * });
 * const log = jetStreamLog(connection, {
 *   name: 'market',
 *   maxAgeMs: 7 * 86_400_000,
 * });
 *
 * tradeFeedEvents$('market').pipe(log.append()).subscribe();
 * ```
 */
export const jetStreamLog = (connection: NatsConnection, options: JetStreamLogOptions): FeedLog => {
  const given = validated(options, { ...engineLogRules, replicas: aReplicaCount });
  checkRequired({ name: given.name }, { name: engineLogRules.name });
  const { replicas = 1, ...own } = given;
  const engine = natsEngine(connection, { bucket: 'rtf-cursors', replicas });
  const cursorKey = (consumer: string): string => `${own.name}.${consumer}`;
  const broker = {
    ...{ engine, connection, path: `RTF_LOG_${own.name}`, cursorKey },
    isAway: (error: unknown) => isAway(error, connection.info),
    isClosed: () => connection.isClosed(),
  };
  return engineLog(broker, own);
};
