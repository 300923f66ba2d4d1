import { catchError, exhaustMap, ignoreElements, merge, NEVER, type Observable, of, timer } from 'rxjs';
import { type Feed, tradeFeedEvents$, type TradeFeedOptions } from '../../index.js';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from '../../testing/index.js';
import { sourceRules } from '../../testing/sources.js';
import { connectionOptions, retryPolicy, targetOf } from '../connection.js';
import type { Ending } from '../delivery.js';
import { localError, usageError } from '../errors.js';
import { endings$, finish, follow, showSteps } from '../follow.js';
import { connection, decimal, defineCommand, feedArgument, option, parsed, timeMs, type ValuesOf } from '../options.js';
import { type PanelContent, panelView, summaryLines } from '../status.js';
import { type CliContext, isTerminal, say, withKeys } from '../terminal.js';
import { joined, logLine } from '../text.js';

const options = {
  ...connection,
  rate: option('--rate <N>', parsed(decimal, sourceRules.rate), 'frames per second of the local service (default: 20)'),
  outageEvery: option(
    '--outage-every <TIME>',
    timeMs,
    'how often the local service restarts, and is away for up to 3 s; first after at most 8 s; 0: never (default: 30)',
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
      if (!isDrawn) say(stdout, logLine(`streaming from ${joined(', ', service.service, service.outage?.())}`));
      const view = panelView(context, service);
      const ends$ = merge(endings$(isDrawn ? withKeys(context) : context), service.outages$);
      const steps$ = events$.pipe(follow(feed, values, ends$));
      const { ending, status } = await showSteps(steps$, view);
      say(stdout, summaryLines(status));
      return finish(ending, values, status.life.hasOpened);
    } finally {
      await service.close();
    }
  },
});

interface DemoService extends PanelContent {
  readonly options: TradeFeedOptions;
  /** Restarts a local service again and again while it's subscribed to. Emits how the command ends if that fails. */
  readonly outages$: Observable<Ending>;
  close(): Promise<void>;
}

const demoService = async (feed: Feed, values: Values, context: CliContext): Promise<DemoService> => {
  const { baseUrl, hasKey } = targetOf(values, context);
  if ((baseUrl !== undefined) !== hasKey)
    throw usageError(
      'An address (TRADE_FEED_BASE_URL or --base-url) needs an API key (TRADE_FEED_API_KEY or --key-file), ' +
        'and a key needs an address. Set both to use that service, or neither to use a local one.',
    );
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
  return { options, service: baseUrl, next: [listenLine], outages$: NEVER, close: () => Promise.resolve() };
};

/** When the local service goes away, and for how long, in ms: at most a quarter of the time. */
const [firstOutageMs, defaultOutageMs, longestOutageMs] = [8_000, 30_000, 3_000];

const localService = async (feed: Feed, values: Values, listenLine: string): Promise<DemoService> => {
  const source = { market: marketBatches$, raw: pendingTransactions$ }[feed]({ rate: values.rate });
  const service = await startTradeFeedService({ sources: { [feed]: source } });
  const account = service.createAccount({ plan: 'developer' });
  const outages = outagesEvery(values.outageEvery ?? defaultOutageMs);
  const startedMs = performance.now();
  const restarts$ = timer(outages.firstMs, outages.everyMs).pipe(
    exhaustMap(() => service.restart({ downMs: outages.lastsMs })),
    ignoreElements(),
    catchError((cause: unknown) =>
      of<Ending>({ kind: 'failed', error: localError(`Can't restart the local service at ${service.baseUrl}`, cause) }),
    ),
  );
  const hasOutages = outages.everyMs > 0;
  return {
    options: { baseUrl: service.baseUrl, apiKey: account.createApiKey(), backoff: retryPolicy(values) },
    service: 'local service',
    ...(hasOutages && { outage: () => outageWords(outages, performance.now() - startedMs) }),
    outages$: hasOutages ? restarts$ : NEVER,
    next: ['npx rx-trade-feed serve', `paste its two exports, then run ${listenLine}`],
    close: () => service.shutdown(),
  };
};

type Outages = Readonly<Record<'firstMs' | 'everyMs' | 'lastsMs', number>>;

export const outagesEvery = (everyMs: number): Outages => ({
  firstMs: Math.min(firstOutageMs, everyMs),
  everyMs,
  lastsMs: Math.min(longestOutageMs, everyMs / 4),
});

/** Counts down to the next outage, or to its end. */
export const outageWords = ({ firstMs, everyMs, lastsMs }: Outages, ms: number): string => {
  const sinceMs = ms < firstMs ? ms - firstMs + everyMs : (ms - firstMs) % everyMs;
  if (ms >= firstMs && sinceMs < lastsMs) return `outage, back in ${wholeSeconds(lastsMs - sinceMs)}`;
  return `next outage in ${wholeSeconds(everyMs - sinceMs)}`;
};

const wholeSeconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`;
