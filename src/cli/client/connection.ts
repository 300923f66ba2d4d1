import { readFile } from 'node:fs/promises';
import type { TradeFeedOptions } from '../../index.js';
import { localError, usageError } from '../cli-error.js';
import type { CliContext } from '../context.js';
import { keyFromFile } from './key.js';

/** What the commands that connect were told of it. */
export interface ConnectionValues {
  readonly 'base-url'?: string;
  readonly 'key-file'?: string;
  readonly ca?: string;
  readonly retries?: number;
}

/** Where to connect and with which key, or that neither was given, nor wanted. */
export interface Target {
  readonly baseUrl: string | undefined;
  readonly hasKey: boolean;
}

/** Says which service was asked for. */
export const targetOf = (values: ConnectionValues, { env }: Pick<CliContext, 'env'>): Target => ({
  baseUrl: values['base-url'] ?? (env['TRADE_FEED_BASE_URL'] || undefined),
  hasKey: values['key-file'] !== undefined || Boolean(env['TRADE_FEED_API_KEY']),
});

/**
 * Makes the options of the library from arguments and environment.
 *
 * @throws CliError when the address or the key is missing, or a file cannot be read
 */
export const connectionOptions = async (
  values: ConnectionValues,
  context: Pick<CliContext, 'env'>,
): Promise<TradeFeedOptions> => {
  const { baseUrl, hasKey } = targetOf(values, context);
  if (baseUrl === undefined)
    throw usageError(`Which service? Set TRADE_FEED_BASE_URL or give --base-url URL. ${tryServe}`);
  if (!hasKey) throw usageError(`Which API key? Set TRADE_FEED_API_KEY or give --key-file FILE. ${tryServe}`);
  const keyFile = values['key-file'];
  return {
    baseUrl,
    apiKey: keyFile === undefined ? context.env['TRADE_FEED_API_KEY'] : await keyFromFile(keyFile),
    tls: values.ca === undefined ? undefined : { ca: await pemFrom(values.ca) },
    backoff: retryPolicy(values),
  };
};

/** Makes the reconnect policy of `--retries`. */
export const retryPolicy = ({ retries }: ConnectionValues): TradeFeedOptions['backoff'] =>
  retries === undefined ? undefined : { maxAttempts: retries };

const tryServe = 'Without an account: `rx-trade-feed serve` runs a local service and says what to set.';

const pemFrom = async (file: string): Promise<string> => {
  const pem = await readFile(file, 'utf8').catch((error: unknown) => {
    throw localError('Cannot read the file of --ca', error);
  });
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw usageError('The file of --ca must hold certificates in PEM.');
  return pem;
};
