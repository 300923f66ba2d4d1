import { parseArgs } from 'node:util';

/** What can be set: by a flag, or by the environment. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly feed: 'market' | 'raw';
  /** When the connection to the service is opened: with the first page, or with the server. */
  readonly connect: 'first-subscriber' | 'bootstrap';
  /** Frames a second of the local service. */
  readonly rate: number;
  /** How long an outage lasts that a viewer of the page asks for, in seconds. */
  readonly outageS: number;
  /** Whether TRADE_FEED_BASE_URL names a service: then there is no local one, and nothing to try out. */
  readonly isRemote: boolean;
}

/** What `--help` prints. */
export const usage = `npm start -- [--port 4700] [--host 127.0.0.1] [--feed market] [--rate 200] [--outage 8] [--connect first-subscriber]

  --port, PORT      where the page is; 0 takes any free port
  --host, HOST      where the server listens
  --feed, FEED      market or raw
  --connect, CONNECT
                    when to connect to the service: first-subscriber or bootstrap
  --rate, RATE      frames a second of the local service
  --outage, OUTAGE  seconds of an outage that a viewer asks for

With TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY set, the frames come from that service instead.`;

/** Thrown for a setting that is not valid, with what is allowed. */
export class SettingsError extends Error {}

/**
 * Reads the settings.
 *
 * @throws SettingsError when one is not valid
 */
export const readSettings = (args: readonly string[], env: NodeJS.ProcessEnv): Settings => {
  const flags = flagsOf(args);
  const feed = flags.feed ?? env.FEED ?? 'market';
  if (feed !== 'market' && feed !== 'raw') throw new SettingsError('The feed is `market` or `raw`.');
  const connect = flags.connect ?? env.CONNECT ?? 'first-subscriber';
  if (connect !== 'first-subscriber' && connect !== 'bootstrap')
    throw new SettingsError('Connect with `first-subscriber` or at `bootstrap`.');
  return {
    host: flags.host ?? env.HOST ?? '127.0.0.1',
    port: numberOf('port', flags.port ?? env.PORT ?? '4700', 0, 65_535),
    feed,
    connect,
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
    connect: { type: 'string' },
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
  throw new SettingsError(`The ${name} is a whole number from ${least} to ${most}.`);
};
