import { interval, switchMap, timer } from 'rxjs';
import { type Feed, tradeFeedEvents$, type TradeFeedOptions } from '../../index.js';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from '../../testing/index.js';
import { sourceRules } from '../../testing/sources.js';
import { connectionOptions, retryPolicy, targetOf } from '../connection.js';
import { type CliContext, isTerminal } from '../context.js';
import { usageError } from '../errors.js';
import { endings$, finish, follow, showSteps } from '../follow.js';
import { connection, decimal, defineCommand, feedArgument, option, parsed, timeMs, type ValuesOf } from '../options.js';
import { type PanelContent, panelView, summaryLines } from '../view/status.js';
import { withKeys } from '../view/terminal.js';
import { duration, logLine } from '../view/text.js';

const options = {
  ...connection,
  rate: option('--rate <N>', parsed(decimal, sourceRules.rate), 'frames per second of the local service (default: 20)'),
  outageEvery: option(
    '--outage-every <TIME>',
    timeMs,
    'how often the local service goes away, for up to 3 s, to show a reconnect; 0: never (default: 30)',
  ),
};
type Values = ValuesOf<typeof options>;

export const command = defineCommand({
  argument: feedArgument,
  summary: 'show a live feed, from a local service by default',
  description: `
    Starts a local service, connects to it and shows what happens. If you set TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY
    (or --base-url and --key-file), it connects to that service instead. Ctrl-C ends it with a summary.
  `,
  options,
  examples: [
    ['rx-trade-feed demo', 'the market feed of a local service'],
    ['rx-trade-feed demo raw --rate 500', 'a faster feed'],
  ],
  run: async (feed, values, context) => {
    const { stdout } = context;
    const service = await demoService(feed, values, context);
    try {
      const events$ = tradeFeedEvents$(feed, service.options);
      const isDrawn = isTerminal(stdout, context);
      if (!isDrawn) stdout.write(logLine(`streaming from ${service.service}`));
      const view = panelView(context, service);
      const steps$ = events$.pipe(follow(feed, values, endings$(isDrawn ? withKeys(context) : context)));
      const { ending, status } = await showSteps(steps$, view);
      stdout.write(summaryLines(status));
      return finish(ending, values, status.life.hasOpened);
    } finally {
      await service.close();
    }
  },
});

interface DemoService extends PanelContent {
  readonly options: TradeFeedOptions;
  close(): Promise<void>;
}

const demoService = async (feed: Feed, values: Values, context: CliContext): Promise<DemoService> => {
  const { baseUrl, hasKey } = targetOf(values, context);
  if (baseUrl === undefined && hasKey) throw missing('an API key', 'address (TRADE_FEED_BASE_URL or --base-url)');
  if (baseUrl !== undefined && !hasKey) throw missing('an address', 'API key (TRADE_FEED_API_KEY or --key-file)');
  const listenLine = `npx rx-trade-feed listen${feed === 'market' ? '' : ` ${feed}`} | jq .`;
  if (baseUrl === undefined) {
    if (values.ca !== undefined)
      throw usageError(
        "--ca doesn't apply to the local service. Leave it out, or set the address and the key of your service.",
      );
    return localService(feed, values, listenLine);
  }
  const local = values.rate === undefined ? values.outageEvery !== undefined && '--outage-every' : '--rate';
  if (local)
    throw usageError(`${local} applies only to the local service. Leave it out, or set neither an address nor a key.`);
  const options = await connectionOptions(values, context);
  return { options, service: baseUrl, next: [listenLine], close: () => Promise.resolve() };
};

const missing = (present: string, absent: string): Error =>
  usageError(`There is ${present}, but no ${absent}. Set both to use that service, or neither to use a local one.`);

const defaultOutageMs = 30_000;
/** How long an outage of the local service lasts, in ms, unless outages are less than twice as far apart. */
const longestOutageMs = 3_000;

const localService = async (feed: Feed, values: Values, listenLine: string): Promise<DemoService> => {
  const source = { market: marketBatches$, raw: pendingTransactions$ }[feed]({ rate: values.rate });
  const service = await startTradeFeedService({ sources: { [feed]: source } });
  const account = service.createAccount({ plan: 'developer' });
  const everyMs = values.outageEvery ?? defaultOutageMs;
  const lastsMs = Math.min(longestOutageMs, everyMs / 2);
  // One attempt at once, then three more. The service comes back halfway through the last delay, so the last succeeds.
  const waitMs = lastsMs / 3;
  const outages = interval(everyMs).pipe(
    switchMap(() => {
      service.failCredentials(true);
      account.expireAccess();
      return timer(lastsMs - waitMs / 2);
    }),
  );
  const running = everyMs > 0 ? outages.subscribe(() => service.failCredentials(false)) : undefined;
  const steady = { initialDelayMs: waitMs, maxDelayMs: waitMs, jitter: 'none' } as const;
  return {
    options: {
      baseUrl: service.baseUrl,
      apiKey: account.createApiKey(),
      backoff: { ...retryPolicy(values), ...(running && steady) },
    },
    service: `local service${running ? `, with an outage every ${duration(everyMs)}` : ''}`,
    next: ['npx rx-trade-feed serve', `paste its two exports, then run ${listenLine}`],
    close: async () => {
      running?.unsubscribe();
      await service.shutdown();
    },
  };
};
