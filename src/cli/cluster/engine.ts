import type { ClusterEngine } from '../../cluster/index.js';
import { CliError, usageError } from '../cli-error.js';
import type { CliContext } from '../context.js';
import type { ClusterArguments } from '../arguments/parsed-command.js';
import { ExitCode } from '../exit-code.js';

/** An engine, and its connection. */
export interface ConnectedEngine {
  readonly engine: ClusterEngine;
  readonly close: () => Promise<void>;
}

/** The protocols of the addresses of engines. */
export const engineProtocols = ['nats:', 'tls:', 'redis:', 'rediss:'] as const;

/**
 * Returns the address of the engine in the arguments or the environment; `undefined` if there is none.
 */
export const engineAddress = ({ cluster }: ClusterArguments, { env }: Pick<CliContext, 'env'>): string | undefined =>
  cluster ?? (env['TRADE_FEED_CLUSTER'] || undefined);

/**
 * Connects to an engine.
 *
 * @throws CliError if its package is not installed, or if it does not answer. The message does not contain the address, which may have a password
 */
export const connectEngine = async (address: string): Promise<ConnectedEngine> => {
  const url = new URL(address);
  return url.protocol.startsWith('redis') ? connectRedis(address) : connectNats(url);
};

const connectNats = async (url: URL): Promise<ConnectedEngine> => {
  const [{ connect }, { natsEngine }] = await Promise.all([
    import('@nats-io/transport-node').catch(missing('@nats-io/transport-node @nats-io/jetstream @nats-io/kv')),
    import('../../nats/index.js').catch(missing('@nats-io/transport-node @nats-io/jetstream @nats-io/kv')),
  ]);
  const [user, pass] = [url.username, url.password].map(decodeURIComponent);
  const connection = await connect({
    servers: url.host,
    ...(user ? { user } : {}),
    ...(pass ? { pass } : {}),
    ...(url.protocol === 'tls:' ? { tls: {} } : {}),
    ...{ maxReconnectAttempts: -1, reconnectTimeWait: 250, pingInterval: 2_000 },
  }).catch(unreachable('NATS'));
  return { engine: natsEngine(connection), close: () => connection.close() };
};

const connectRedis = async (address: string): Promise<ConnectedEngine> => {
  const [{ Redis }, { redisEngine }] = await Promise.all([
    import('ioredis').catch(missing('ioredis')),
    import('../../redis/index.js').catch(missing('ioredis')),
  ]);
  const connections = [new Redis(address, { lazyConnect: true }), new Redis(address, { lazyConnect: true })] as const;
  // The status of the engine shows a lost connection.
  for (const connection of connections) connection.on('error', () => undefined);
  const close = async (): Promise<void> => {
    for (const connection of connections) connection.disconnect();
    return Promise.resolve();
  };
  await Promise.all(connections.map((connection) => connection.connect())).catch(async (error: unknown) => {
    await close();
    return unreachable('Redis')(error);
  });
  return { engine: redisEngine(...connections), close };
};

const missing = (packages: string) => (): never => {
  throw usageError(`The engine of --cluster needs other packages. Install them: npm install ${packages}`);
};

const unreachable =
  (name: string) =>
  (error: unknown): never => {
    const reason = (error as Partial<NodeJS.ErrnoException>).code ?? (error as Error).message;
    throw new CliError(
      ExitCode.unavailable,
      `The ${name} server of --cluster did not accept a connection (${reason}).`,
      error,
    );
  };
