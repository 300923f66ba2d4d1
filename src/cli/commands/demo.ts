import { catchError, exhaustMap, ignoreElements, merge, NEVER, type Observable, of, timer } from 'rxjs';
import { type Feed, tradeFeedEvents$, type TradeFeedOptions } from '../../index.js';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from '../../testing/index.js';
import { sourceRules } from '../../testing/sources.js';
import { printable } from '../../protocol/printable.js';
import { connectionOptions, retryPolicy, targetOf } from '../connection.js';
import { type Ending, endings$ } from '../delivery.js';
import { localError, usageError } from '../errors.js';
import { currentRate, finish, follow, recentEvents, showSteps, type Status, type Step, tickMs } from '../follow.js';
import { connection, decimal, defineCommand, feedName, option, parsed, timeMs, type ValuesOf } from '../options.js';
import { eventTexts, eventWords, gapWords, phaseOf, reconnectCauses, statusLine, summaryLines } from '../status.js';
import { type CliContext, drawn, isTerminal, logged, say, screen, type TerminalSize, withKeys } from '../terminal.js';
import { amount, bytes, count, duration, joined, type Line, logLine, printed, sparkline, spread } from '../text.js';

const options = {
  ...connection,
  rate: option('--rate <N>', 'frames per second of the local service (default: 20)', parsed(decimal, sourceRules.rate)),
  outageEvery: option(
    '--outage-every <TIME>',
    'how often the local service restarts, and is away for up to 3 s; first after at most 8 s; 0: never (default: 30)',
    timeMs,
  ),
};
type Values = ValuesOf<typeof options>;

export const command = defineCommand({
  argument: feedName,
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
      const steps$ = follow(events$, feed, values, ends$);
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
  if (baseUrl === undefined && values.ca !== undefined)
    throw usageError(
      "--ca doesn't apply to the local service. Leave it out, or set the address and the key of your service.",
    );
  if (baseUrl === undefined) return localService(feed, values, listenLine);
  const local = values.rate === undefined ? values.outageEvery !== undefined && '--outage-every' : '--rate';
  if (local)
    throw usageError(`${local} applies only to the local service. Leave it out, or set neither an address nor a key.`);
  const options = await connectionOptions(values, context);
  return { options, service: baseUrl, next: [listenLine], outages$: NEVER, close: () => Promise.resolve() };
};

/** When the local service goes away, and for how long: at most a quarter of the time. */
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

export const outageWords = ({ firstMs, everyMs, lastsMs }: Outages, ms: number): string => {
  const sinceMs = ms < firstMs ? ms - firstMs + everyMs : (ms - firstMs) % everyMs;
  if (ms >= firstMs && sinceMs < lastsMs) return `outage, back in ${wholeSeconds(lastsMs - sinceMs)}`;
  return `next outage in ${wholeSeconds(everyMs - sinceMs)}`;
};

const wholeSeconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`;

export interface PanelContent {
  readonly service: string;
  /** Returns when the next outage of the service begins, or when this one ends. Missing if it has none. */
  readonly outage?: () => string;
  /** Command lines to try next, each in another terminal. */
  readonly next: readonly string[];
}

const [maxPlainColumns, maxPanelColumns] = [160, 100];

/** Shows the panel on a terminal, or else log lines: events, the first frame, and the status every 2 s. */
export const panelView = (context: CliContext, content: PanelContent) => {
  const { stdout } = context;
  if (isTerminal(stdout, context))
    return drawn<Step>(stdout, context, screen, ({ status }, size) => panel(status, { ...content, ...size }));
  const log = (step: Step, isDue: boolean) => {
    const { event, status } = step;
    const first = `first frame, ${bytes(status.bytes)}: ${startOf(status)}`;
    const flow = isDue ? [joined(' · ', printed(statusLine(status), maxPlainColumns), content.outage?.())] : [];
    return [...(event.type === 'frame' ? [printed([[first]], maxPlainColumns)] : []), ...flow, ...eventTexts(step)];
  };
  return logged(stdout, log, 2_000, tickMs);
};

export const perTick = ({ samples }: Status, what: 'frames' | 'bytes'): readonly number[] =>
  samples.slice(1).map((sample, n) => sample[what] - (samples[n] as typeof sample)[what]);

const startOf = ({ lastFrame }: Status): string => {
  const start = lastFrame?.data.subarray(0, maxPlainColumns * 4);
  return lastFrame?.isBinary ? String(start?.toString('hex')) : printable(start?.toString() ?? '');
};

const labelWidth = 12;
const labelled = (label: string, ...spans: Line): Line => [[` ${label.padEnd(labelWidth)}`, 'dim'], ...spans];

type Row = readonly [rank: number, line: Line];
const emptyRow: Row = [14, []];

/**
 * Renders the panel to fit the terminal. If it has fewer rows, those with the highest ranks go: first the empty ones, and
 * last the state, the line about Ctrl-C, the latest event and the next outage.
 */
export const panel = (
  status: Status,
  { service, outage, next, columns, rows }: PanelContent & TerminalSize,
): readonly Line[] => {
  const width = Math.min(columns, maxPanelColumns) - 1;
  const { mark, title, reason } = phaseOf(status);
  const { life, recent, startedAt, now } = status;
  const rate = currentRate(status);
  const barCount = Math.max(0, Math.min(40, width - 50));
  const flow = (what: 'frames' | 'bytes', text: (number: number) => string, rateText = text): Line => {
    const line = sparkline(perTick(status, what).slice(-barCount));
    const current = `${rateText(rate[what])} a second`.padEnd(18);
    return spread(labelled(what, [current, 'bold'], [line, 'cyan']), [[`${text(status[what])} in all`]], width);
  };
  const lines: readonly Row[] = [
    [3, spread([[' rx-trade-feed', 'bold']], [[joined(', ', service, outage?.()), 'dim']], width)],
    emptyRow,
    [0, spread([[' '], mark, [` ${title}`, 'bold']], [[duration(now - startedAt)]], width)],
    reason === undefined ? emptyRow : [10, [[`   ${reason}`, 'dim']]],
    [9, flow('frames', count, amount)],
    [9, flow('bytes', bytes)],
    [12, labelled('last frame', [lastFrameWords(status)])],
    [12, labelled('', [startOf(status), 'dim'])],
    emptyRow,
    [11, labelled('gaps', [gapWords(status), life.totals.gaps > 0 ? 'yellow' : undefined])],
    [11, labelled('reconnects', [reconnectCauses(status)])],
    emptyRow,
    ...recent.map((event, n): Row => [n === recent.length - 1 ? 2 : 2 + recent.length - n, recentEvent(status, event)]),
    ...Array<Row>(recentEvents - recent.length).fill(emptyRow),
    emptyRow,
    [13, [[' Try next, in other terminals:', 'dim']]],
    ...next.map((line, index): Row => [13, labelled(`terminal ${index + 2}`, [line, 'cyan'])]),
    emptyRow,
    [1, [[' Ctrl-C ends it with a summary.', 'dim']]],
  ];
  const order = [...lines.keys()].toSorted((one, other) => (lines[one] as Row)[0] - (lines[other] as Row)[0]);
  const kept = new Set(order.slice(0, Math.max(1, rows)));
  return lines.filter((_, index) => kept.has(index)).map(([, line]) => line);
};

const recentEvent = ({ startedAt }: Status, event: Status['recent'][number]): Line => {
  const at = event.type === 'gap' ? event.to : event.at;
  const seconds = (Math.max(0, at - startedAt) / 1_000).toFixed(2);
  const isLoss = event.type === 'gap' || event.type === 'disconnected';
  return labelled(`${seconds} s`.padStart(labelWidth - 2), [eventWords(event), isLoss ? 'yellow' : undefined]);
};

const lastFrameWords = ({ lastFrame: last, now }: Status): string =>
  last === undefined
    ? 'none yet'
    : `${bytes(last.byteLength)}, ${last.isBinary ? 'binary' : 'text'}, ${duration(Math.max(0, now - last.receivedAt))} ago`;
