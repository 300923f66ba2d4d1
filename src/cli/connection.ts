import { readFile, stat } from 'node:fs/promises';
import { proxyFromEnvironment, type TradeFeedOptions } from '../index.js';
import type { ConnectionArguments, ServiceArguments } from './arguments/parsed-command.js';
import { CliError, localError, usageError } from './cli-error.js';
import type { CliContext } from './context.js';

/** The service that the arguments and the environment name. */
export interface Target {
  readonly baseUrl: string | undefined;
  readonly hasKey: boolean;
}

/** Returns the service that the arguments and the environment name. */
export const targetOf = (options: ServiceArguments, { env }: Pick<CliContext, 'env'>): Target => ({
  baseUrl: options.baseUrl ?? (env['TRADE_FEED_BASE_URL'] || undefined),
  hasKey: options.keyFile !== undefined || Boolean(env['TRADE_FEED_API_KEY']),
});

/**
 * Creates the options of the library from the arguments and the environment.
 *
 * @throws CliError when the address or the key is missing, or a file cannot be read
 */
export const connectionOptions = async (
  options: ConnectionArguments,
  context: Pick<CliContext, 'env'>,
): Promise<TradeFeedOptions> => {
  const { baseUrl, hasKey } = targetOf(options, context);
  if (baseUrl === undefined)
    throw usageError(
      `The address of the service is missing. Set TRADE_FEED_BASE_URL or use --base-url URL. ${localAdvice}`,
    );
  if (!hasKey)
    throw usageError(`The API key is missing. Set TRADE_FEED_API_KEY or use --key-file FILE. ${localAdvice}`);
  const { keyFile } = options;
  const tls = await tlsOf(options);
  return {
    baseUrl,
    apiKey: keyFile === undefined ? context.env['TRADE_FEED_API_KEY'] : await keyFromFile(keyFile),
    tls,
    ...(await proxyFromEnvironment({ env: context.env, tls })),
    backoff: retryPolicy(options),
  };
};

/** Creates the reconnect policy of `--retries`. */
export const retryPolicy = ({ retries }: ConnectionArguments): TradeFeedOptions['backoff'] =>
  retries === undefined ? undefined : { maxAttempts: retries };

/**
 * Creates the TLS options of `--ca`.
 *
 * @throws CliError when the file cannot be read or contains no certificate
 */
export const tlsOf = async ({ ca }: Pick<ServiceArguments, 'ca'>): Promise<TradeFeedOptions['tls']> =>
  ca === undefined ? undefined : { ca: await readCertificates(ca) };

const localAdvice = 'Without an account, run `rx-trade-feed serve`: it starts a local service and prints what to set.';

const readCertificates = async (file: string): Promise<string> => {
  const pem = await readFile(file, 'utf8').catch((error: unknown) => {
    throw localError('Cannot read the file of --ca', error);
  });
  if (!pem.includes('-----BEGIN CERTIFICATE-----'))
    throw usageError('The file of --ca must contain certificates in PEM.');
  return pem;
};

/**
 * Reads the API key from a file. A regular file is read again for every ticket, so that the key can rotate. A pipe
 * (`--key-file <(pass show …)`) is read once.
 *
 * @throws CliError when the file cannot be read or contains no key; the message never shows the content
 */
const keyFromFile = async (file: string): Promise<string | (() => Promise<string>)> => {
  try {
    const isRegular = (await stat(file)).isFile();
    const key = await readKey(file);
    return isRegular ? () => readKey(file) : key;
  } catch (error) {
    throw error instanceof CliError ? error : localError('Cannot read the file of --key-file', error);
  }
};

// A file may be empty while another program writes it. If this error happens for a later ticket, the feed retries with backoff.
const readKey = async (file: string): Promise<string> => {
  const key = (await readFile(file, 'utf8')).replace(/[\r\n]+$/, '');
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw usageError('The file of --key-file must contain only an API key: one line of visible ASCII characters.');
};
