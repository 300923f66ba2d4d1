import { interval } from 'rxjs';
import type { TradeFeedOptions } from '../../index.js';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from '../../testing/index.js';
import type { DemoCommand } from '../arguments/parsed-command.js';
import { usageError } from '../cli-error.js';
import { connectionOptions, retryPolicy, targetOf } from '../connection.js';
import type { CliContext } from '../context.js';
import { duration } from '../view/units.js';

/** The service of a demo. */
export interface DemoService {
  /** The options of the connection. */
  readonly options: TradeFeedOptions;
  /** A description of the service. */
  readonly service: string;
  /** Command lines to try next, each in another terminal. */
  readonly next: readonly string[];
  /** Stops the service if it was started for the demo. */
  close(): Promise<void>;
}

const defaultOutageMs = 30_000;

/**
 * Returns the service in the arguments or the environment, or starts a local one.
 *
 * @throws CliError when the address or the key is missing, or an option does not apply to this service
 */
export const demoService = async (command: DemoCommand, context: CliContext): Promise<DemoService> => {
  const { options } = command;
  const { baseUrl, hasKey } = targetOf(options, context);
  if (baseUrl === undefined && hasKey) throw missing('an API key', 'address (TRADE_FEED_BASE_URL or --base-url)');
  if (baseUrl !== undefined && !hasKey) throw missing('an address', 'API key (TRADE_FEED_API_KEY or --key-file)');
  if (baseUrl === undefined) {
    if (options.ca !== undefined) throw usageError('--ca does not apply to the local service.');
    return localService(command);
  }
  const local = options.rate === undefined ? options.outageEvery !== undefined && '--outage-every' : '--rate';
  if (local) throw usageError(`${local} applies only to the local service.`);
  return remoteService(command, baseUrl, context);
};

const missing = (present: string, absent: string): Error =>
  usageError(`There is ${present}, but no ${absent}. Set both to use that service, or neither to use a local one.`);

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
  const outageMs = options.outageEvery ?? defaultOutageMs;
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
