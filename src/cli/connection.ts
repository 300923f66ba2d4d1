import { readFile, stat } from 'node:fs/promises';
import { proxyFromEnvironment, type TradeFeedOptions } from '../index.js';
import { credentialEdge } from '../protocol/secret.js';
import type { CliContext } from './context.js';
import { localError, usageError } from './errors.js';
import type { ConnectionValues, ServiceValues } from './options.js';

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
  const tls = await tlsOf(values);
  const apiKey = values.keyFile === undefined ? env['TRADE_FEED_API_KEY'] : await keyFromFile(values.keyFile);
  return { baseUrl, apiKey, tls, ...(await proxyFromEnvironment({ env, tls })), backoff: retryPolicy(values) };
};

export const retryPolicy = ({ retries }: ConnectionValues): TradeFeedOptions['backoff'] =>
  retries === undefined ? undefined : { maxAttempts: retries };

export const tlsOf = async ({ ca }: Pick<ServiceValues, 'ca'>): Promise<TradeFeedOptions['tls']> => {
  if (ca === undefined) return undefined;
  const pem = await readFileOf('--ca', ca);
  if (!pem.includes('-----BEGIN CERTIFICATE-----'))
    throw usageError('The file of --ca must contain certificates in PEM.');
  return { ca: pem };
};

/** Reads a file that an option names. Rejects with a CliError that names the option. */
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
      `The ${edge === undefined ? 'file of --key-file must contain only an API key: one line of visible ASCII characters' : `key in the file of --key-file ${edge}`}.`,
    );
  };
  const key = await readKey();
  const isRegular = await stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
  return isRegular ? readKey : key;
};
