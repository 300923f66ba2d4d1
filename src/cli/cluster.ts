import { noop, type Observable } from 'rxjs';
import { type ClusterEngine, createFeedCluster } from '../cluster/index.js';
import { type ClusterEvent, type Feed, type FeedEvent, tradeFeedEvents$ } from '../index.js';
import { credentialsOf } from '../protocol/secret.js';
import { connectionOptions } from './connection.js';
import type { CliContext } from './context.js';
import { CliError, ExitCode, usageError } from './errors.js';
import { type ConnectionValues, engineUrl, type ReplicaValues, valueOf } from './options.js';

export const defaultAccount = 'main';

/**
 * Creates the feed of a command: over its own connection, or as a replica of a cluster. `close` hands the cluster's
 * connection over to another replica and disconnects from the engine.
 */
export const replicaFeed = async (
  feed: Feed,
  values: ConnectionValues & ReplicaValues,
  context: CliContext,
): Promise<{ readonly events$: Observable<FeedEvent | ClusterEvent>; readonly close: () => Promise<void> }> => {
  const { account, replica } = values;
  const address = engineAddress(values, context);
  const unused = account === undefined ? replica && '--replica' : '--account';
  if (address === undefined && unused)
    throw usageError(`${unused} applies only to a cluster. Use --cluster URL as well.`);
  const options = await connectionOptions(values, context);
  if (address === undefined) return { events$: tradeFeedEvents$(feed, options), close: () => Promise.resolve() };
  const { engine, close } = await connectEngine(address);
  const cluster = createFeedCluster(feed, { ...options, engine, account: account ?? defaultAccount, replica });
  // The command unsubscribes before it ends, but the replica must hand over its ownership first.
  const kept = cluster.events$.subscribe({ error: noop });
  return {
    events$: cluster.events$,
    close: async () => {
      await cluster.handOver();
      kept.unsubscribe();
      await close();
    },
  };
};

/** Reads the engine's address from the arguments or the environment. No error shows it: it may hold a password. */
export const engineAddress = (
  { cluster }: Pick<ReplicaValues, 'cluster'>,
  { env }: Pick<CliContext, 'env'>,
): string | undefined => {
  const address = env['TRADE_FEED_CLUSTER'] || undefined;
  return cluster ?? (address && valueOf('TRADE_FEED_CLUSTER', engineUrl, address));
};

interface ConnectedEngine {
  readonly engine: ClusterEngine;
  readonly close: () => Promise<void>;
}

/** Connects to an engine. No error shows the address, which may hold a password. */
export const connectEngine = async (address: string): Promise<ConnectedEngine> => {
  const url = new URL(address);
  return url.protocol.startsWith('redis') ? connectRedis(url) : connectNats(url);
};

const connectNats = async (url: URL): Promise<ConnectedEngine> => {
  const packages = '@nats-io/transport-node @nats-io/jetstream @nats-io/kv';
  const [{ connect }, { natsEngine }] = await Promise.all([
    import('@nats-io/transport-node').catch(missing(packages)),
    import('../nats/index.js').catch(missing(packages)),
  ]);
  const { user, password: pass } = credentialsOf(url);
  const connection = await connect({
    servers: url.host,
    ...(user && { user }),
    ...(pass && { pass }),
    ...(url.protocol === 'tls:' && { tls: {} }),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    ignoreAuthErrorAbort: true,
    pingInterval: 2_000,
    timeout: 2_000,
  }).catch(unreachable('NATS'));
  return { engine: natsEngine(connection), close: () => connection.close() };
};

const connectRedis = async (url: URL): Promise<ConnectedEngine> => {
  const [{ Redis }, { redisEngine }] = await Promise.all([
    import('ioredis').catch(missing('ioredis')),
    import('../redis/index.js').catch(missing('ioredis')),
  ]);
  // The client decodes the address as well, and throws on a `%` that doesn't start an escape.
  const { user, password } = credentialsOf(url);
  const encoded = { username: encodeURIComponent(user), password: encodeURIComponent(password) };
  const { href } = Object.assign(new URL(url), encoded);
  const connections = [new Redis(href, { lazyConnect: true }), new Redis(href, { lazyConnect: true })] as const;
  const close = async (): Promise<void> => {
    for (const connection of connections) connection.disconnect();
    return Promise.resolve();
  };
  try {
    // The engine's status reports a lost connection.
    for (const connection of connections) connection.on('error', noop);
    await Promise.all(connections.map((connection) => connection.connect()));
  } catch (error) {
    await close();
    return unreachable('Redis')(error);
  }
  return { engine: redisEngine(...connections), close };
};

const missing = (packages: string) => (): never => {
  throw usageError(`The engine of --cluster needs other packages. Install them: npm install ${packages}`);
};

const unreachable =
  (name: string) =>
  (error: unknown): never => {
    const { code, message } = error as NodeJS.ErrnoException;
    const text = `The ${name} server of --cluster didn't accept a connection (${code ?? message}). Check its address, and that it runs.`;
    throw new CliError(ExitCode.unavailable, text, error);
  };
