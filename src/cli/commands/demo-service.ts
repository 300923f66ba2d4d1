import { interval } from 'rxjs';
import type { TradeFeedOptions } from '../../index.js';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from '../../testing/index.js';
import type { DemoCommand } from '../arguments/parse.js';
import { usageError } from '../cli-error.js';
import { connectionOptions, retryPolicy, targetOf } from '../client/connection.js';
import type { CliContext } from '../context.js';
import { duration } from '../view/units.js';

/** The service that a demo streams from. */
export interface DemoService {
  /** How to connect to it. */
  readonly options: TradeFeedOptions;
  /** What it is, for a person. */
  readonly service: string;
  /** Command lines to try next, each in a terminal of its own. */
  readonly next: readonly string[];
  /** Ends it, if it was started for the demo. */
  close(): Promise<void>;
}

const defaultOutageMs = 30_000;

/**
 * Gives the service that is set, or starts a local one.
 *
 * @throws CliError when only half of a service is set
 */
export const demoService = async (command: DemoCommand, context: CliContext): Promise<DemoService> => {
  const { options } = command;
  const { baseUrl, hasKey } = targetOf(options, context);
  if (baseUrl === undefined && hasKey) throw halfSet('an API key', 'address (TRADE_FEED_BASE_URL or --base-url)');
  if (baseUrl !== undefined && !hasKey) throw halfSet('an address', 'API key (TRADE_FEED_API_KEY or --key-file)');
  const others = baseUrl === undefined ? (['ca'] as const) : (['rate', 'outage-every'] as const);
  const other = others.find((name) => options[name] !== undefined);
  if (other) throw usageError(`--${other} is ${baseUrl === undefined ? 'not ' : ''}for the local service.`);
  return baseUrl === undefined ? localService(command) : remoteService(command, baseUrl, context);
};

const halfSet = (what: string, missing: string): Error =>
  usageError(`There is ${what}, but no ${missing}. Set both to stream from that service, or neither for a local one.`);

const remoteService = async (command: DemoCommand, baseUrl: string, context: CliContext): Promise<DemoService> => ({
  options: await connectionOptions(command.options, context),
  service: baseUrl,
  next: [listenLine(command)],
  close: () => Promise.resolve(),
});

const listenLine = ({ feed }: DemoCommand): string =>
  `npx rx-trade-feed listen${feed === 'market' ? '' : ` ${feed}`} | jq .`;

const localService = async (command: DemoCommand): Promise<DemoService> => {
  const { feed, options } = command;
  const source = { market: marketBatches$, raw: pendingTransactions$ }[feed]({ rate: options.rate });
  const service = await startTradeFeedService({ sources: { [feed]: source } });
  const account = service.createAccount({ plan: 'developer' });
  const outageMs = options['outage-every'] ?? defaultOutageMs;
  const outages = outageMs > 0 ? interval(outageMs).subscribe(() => account.expireAccess()) : undefined;
  return {
    options: { baseUrl: service.baseUrl, apiKey: account.createApiKey(), backoff: retryPolicy(options) },
    service: `local service${outages ? `, with an outage every ${duration(outageMs)}` : ''}`,
    next: ['npx rx-trade-feed serve', `its two exports, then ${listenLine(command)}`],
    close: async () => {
      outages?.unsubscribe();
      await service.shutdown();
    },
  };
};
