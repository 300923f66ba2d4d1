import { readFile, stat } from 'node:fs/promises';
import { noop } from 'rxjs';
import { createFeedCluster } from '../cluster/index.js';
import { type Feed, proxyFromEnvironment, tradeFeedEvents$, type TradeFeedOptions } from '../index.js';
import { credentialEdge, credentialsOf } from '../protocol/secret.js';
import { CliError, ExitCode, localError, usageError } from './errors.js';
import { type ConnectionValues, engineUrl, type ReplicaValues, type ServiceValues, valueOf } from './options.js';
import type { CliContext } from './terminal.js';

export const targetOf = ({ baseUrl, keyFile }: ServiceValues, { env }: Pick<CliContext, 'env'>) => ({
  baseUrl: baseUrl ?? (env['TRADE_FEED_BASE_URL'] || undefined),
  hasKey: keyFile !== undefined || Boolean(env['TRADE_FEED_API_KEY']),
});

const localAdvice = 'No account? Run `rx-trade-feed serve`: it starts a local service and prints what to set.';

export const connectionOptions = async (
  values: ConnectionValues,
  { env }: Pick<CliContext, 'env'>,
): Promise<TradeFeedOptions> => {
  const { baseUrl, hasKey } = targetOf(values, { env });
  if (baseUrl === undefined)
    throw usageError(`Missing base URL. Set TRADE_FEED_BASE_URL or use --base-url URL. ${localAdvice}`);
  if (!hasKey) throw usageError(`Missing API key. Set TRADE_FEED_API_KEY or use --key-file FILE. ${localAdvice}`);
  const tls = await tlsOf(values.ca);
  const apiKey = values.keyFile === undefined ? env['TRADE_FEED_API_KEY'] : await keyFromFile(values.keyFile);
  return { baseUrl, apiKey, tls, ...(await proxyFromEnvironment({ env, tls })), backoff: retryPolicy(values) };
};

export const retryPolicy = ({ retries }: ConnectionValues): TradeFeedOptions['backoff'] =>
  retries === undefined ? undefined : { maxAttempts: retries };

const tlsOf = async (file: string | undefined): Promise<TradeFeedOptions['tls']> => {
  const ca = file === undefined ? undefined : await readFileOf('--ca', file);
  if (ca?.includes('-----BEGIN CERTIFICATE-----') === false)
    throw usageError('The file of --ca must contain certificates in PEM.');
  return ca === undefined ? undefined : { ca };
};

export const readFileOf = (option: string, file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    throw localError(`Can't read the file of ${option}`, error);
  });

/**
 * Reads the API key from a file. Reads a regular file again for every ticket, so you can rotate the key; reads a pipe
 * (`--key-file <(pass show …)`) once. No error shows the content.
 */
const keyFromFile = async (file: string): Promise<string | (() => Promise<string>)> => {
  const readKey = async (): Promise<string> => {
    const key = (await readFileOf('--key-file', file)).replace(/[\r\n]+$/, '');
    if (/^[\x21-\x7e]+$/.test(key)) return key;
    // Another program may be writing the file. For a later ticket, the feed retries with backoff.
    const edge = credentialEdge(key);
    throw usageError(
      edge === undefined
        ? 'The file of --key-file must contain only an API key: one line of visible ASCII characters.'
        : `The key in the file of --key-file ${edge}.`,
    );
  };
  const key = await readKey();
  return (await stat(file)).isFile() ? readKey : key;
};

export const defaultAccount = 'main';

/**
 * Creates the feed of a command: over its own connection, or as a replica of a cluster. `close` hands the cluster's
 * connection over to another replica and disconnects from the engine.
 */
export const replicaFeed = async (feed: Feed, values: ConnectionValues & ReplicaValues, context: CliContext) => {
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

/** Connects to an engine. No error shows the address, which may hold a password. */
export const connectEngine = (address: string) => {
  const url = new URL(address);
  return url.protocol.startsWith('redis') ? connectRedis(url) : connectNats(url);
};

const connectNats = async (url: URL) => {
  const packages = [import('@nats-io/transport-node'), import('../nats/index.js')] as const;
  const names = '@nats-io/transport-node @nats-io/jetstream @nats-io/kv';
  const [{ connect }, { natsEngine }] = await Promise.all(packages).catch(missing(names));
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

const connectRedis = async (url: URL) => {
  const packages = [import('ioredis'), import('../redis/index.js')] as const;
  const [{ Redis }, { redisEngine }] = await Promise.all(packages).catch(missing('ioredis'));
  // The client decodes the address as well, and throws on a `%` that doesn't start an escape.
  const { user, password } = credentialsOf(url);
  const encoded = { username: encodeURIComponent(user), password: encodeURIComponent(password) };
  const { href } = Object.assign(new URL(url), encoded);
  const connections = [new Redis(href, { lazyConnect: true }), new Redis(href, { lazyConnect: true })] as const;
  const close = (): Promise<void> => {
    for (const connection of connections) connection.disconnect();
    return Promise.resolve();
  };
  // The engine's status reports a lost connection.
  const connected = connections.map((connection) => connection.on('error', noop).connect());
  await Promise.all(connected).catch((error: unknown) => close().then(() => unreachable('Redis')(error)));
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
