import { parseArgs } from 'node:util';

/** The settings, from flags or the environment. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly feed: 'market' | 'raw';
  /** Frames per second of the local service. */
  readonly rate: number;
  /** The length in seconds of an outage that a viewer causes. */
  readonly outageS: number;
  /** Whether TRADE_FEED_BASE_URL names a service. Then there is no local service, and no events to cause. */
  readonly isRemote: boolean;
}

/** The output of `--help`. */
export const usage = `npm start -- [--port 4700] [--host 127.0.0.1] [--feed market] [--rate 200] [--outage 8]

  --port, PORT      the port of the page; 0 selects a free port
  --host, HOST      the address on which the server listens
  --feed, FEED      market or raw
  --rate, RATE      frames per second of the local service
  --outage, OUTAGE  the length in seconds of an outage that a viewer causes

With TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY set, the frames come from that service instead.`;

/** The error for an invalid setting. Its message names the allowed values. */
export class SettingsError extends Error {}

/**
 * Reads the settings.
 *
 * @throws SettingsError when a setting isn't valid
 */
export const readSettings = (args: readonly string[], env: NodeJS.ProcessEnv): Settings => {
  const flags = flagsOf(args);
  const feed = flags.feed ?? env.FEED ?? 'market';
  if (feed !== 'market' && feed !== 'raw') throw new SettingsError('`--feed` must be `market` or `raw`.');
  return {
    host: flags.host ?? env.HOST ?? '127.0.0.1',
    port: numberOf('port', flags.port ?? env.PORT ?? '4700', 0, 65_535),
    feed,
    rate: numberOf('rate', flags.rate ?? env.RATE ?? '200', 1, 20_000),
    outageS: numberOf('outage', flags.outage ?? env.OUTAGE ?? '8', 1, 3_600),
    isRemote: Boolean(env.TRADE_FEED_BASE_URL),
  };
};

const flagsOf = (args: readonly string[]) => {
  const options = {
    host: { type: 'string' },
    port: { type: 'string' },
    feed: { type: 'string' },
    rate: { type: 'string' },
    outage: { type: 'string' },
  } as const;
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new SettingsError((error as Error).message);
  }
};

const numberOf = (name: string, text: string, least: number, most: number): number => {
  const number = Number(text);
  if (Number.isInteger(number) && number >= least && number <= most && text.trim() !== '') return number;
  throw new SettingsError(`\`--${name}\` must be a whole number from ${least} to ${most}.`);
};
