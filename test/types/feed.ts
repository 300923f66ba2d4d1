import { Agent } from 'node:https';
import * as feed from 'rx-trade-feed';
import { backoff, openConnection, requestTicket, tradeFeed$, tradeFeedEvents$ } from 'rx-trade-feed';
import { feedLog, type LogRecord } from 'rx-trade-feed/log';
import { defer, filter, map, type Observable, of, retry, retryWhen, VirtualTimeScheduler } from 'rxjs';
import { Agent as UndiciAgent } from 'undici';
import { emits } from './emits.js';

// The composition of the feed, with `retryWhen` and with `retry`, and with an operator between its parts.
emits<feed.Frame>()(defer(() => of('market' as const)).pipe(requestTicket(), openConnection(), retryWhen(backoff())));
emits<feed.Frame>()(
  of('raw' as const).pipe(requestTicket(), openConnection(), retry({ delay: feed.retryDelay({ maxAttempts: 3 }) })),
);
emits<feed.Frame>()(
  of<feed.Feed>('raw').pipe(
    requestTicket(),
    map((ticket) => ({ ...ticket, deadlineMs: performance.now() + 1_000 })),
    openConnection(),
  ),
);
openConnection({}, (name) => (name satisfies feed.Feed).length);
backoff({}, (reconnect) => (reconnect satisfies feed.Reconnect).failure.advice);
emits<feed.Frame>()(tradeFeed$('raw'));
emits<feed.Frame>()(tradeFeed$(undefined));
emits<feed.FeedEvent>()(tradeFeedEvents$('raw', { apiKey: 'key' }));

// @ts-expect-error -- a feed is one of two strings
tradeFeed$('Market');
// @ts-expect-error -- also for the operator
of('trades').pipe(requestTicket());
// @ts-expect-error -- a connection needs a ticket, not a feed
of<feed.Feed>('raw').pipe(openConnection());
// @ts-expect-error -- the secret of a ticket is wrapped: decode the wire format
'secret' satisfies feed.Ticket['ticket'];
// @ts-expect-error -- a stage is required
feed.classify({ status: 401 });
// @ts-expect-error -- a feed is not an Observer: nothing can be sent
'next' satisfies keyof ReturnType<typeof tradeFeed$>;

declare const frame: feed.Frame;
// @ts-expect-error -- `json()` returns `unknown`
frame.json() satisfies string;

// The options.
export const all = {
  baseUrl: 'https://feed.example.com',
  apiKey: 'key',
  ticketTimeoutMs: 1,
  handshakeTimeoutMs: 1,
  idleTimeoutMs: 0,
  maxFrameBytes: 1,
  backoff: {
    initialDelayMs: 1,
    maxDelayMs: 1,
    factor: 1,
    jitter: 'equal',
    stableAfterMs: 1,
    maxAttempts: Infinity,
    random: () => 0.5,
    scheduler: new VirtualTimeScheduler(),
  },
  deliveryDelayMs: 'auto',
  classify: (failure, verdict) => {
    failure satisfies feed.TradeFeedError;
    verdict satisfies feed.Verdict;
    return failure.code === 'client-too-slow' ? 'stop' : verdict;
  },
  tls: { ca: 'pem', servername: 'x', rejectUnauthorized: true, checkServerIdentity: () => undefined },
  standby: true,
  warnings: false,
  receiveIn: 'main',
  receiveBufferBytes: 1_000_000,
  dispatcher: new UndiciAgent(),
  agent: new Agent(),
} satisfies Required<feed.TradeFeedOptions>;

export const wrong: readonly feed.TradeFeedOptions[] = [
  // @ts-expect-error -- a key is a string
  { apiKey: 5 },
  // @ts-expect-error -- also if a function returns it
  { apiKey: () => 5 },
];

// The events are a union discriminated by `type`.
export const describe = (event: feed.FeedEvent): string | number => {
  switch (event.type) {
    case 'ticket-requested':
      return event.feed satisfies 'market' | 'raw';
    case 'ticket-issued':
      return event.expiresAt satisfies string;
    case 'opened':
      return event.connection satisfies number;
    case 'frame':
      return (event satisfies feed.Frame).data.length;
    case 'disconnected':
      return (event.failure satisfies feed.TradeFeedError).code;
    case 'reconnecting':
      return event.delayMs + event.attempt + (event.verdict satisfies feed.Verdict).length;
    case 'gap':
      return event.to - event.from - event.durationMs + (event.failure satisfies feed.TradeFeedError).uptimeMs;
    case 'stopped':
      return (event.failure satisfies feed.TradeFeedError).code;
    case 'watermark':
      return event.at satisfies number;
    default:
      return event satisfies never;
  }
};
declare const event: feed.FeedEvent;
// @ts-expect-error -- not every event has data: narrow by `type` first
export const unnarrowed = event.data as unknown;
if (event.type === 'ticket-issued') {
  // @ts-expect-error -- the event does not contain the ticket
  event satisfies { ticket: unknown };
}

// The messages of the channels.
export const failureOf = ({ event }: feed.FeedEventMessage): feed.TradeFeedError | undefined => {
  switch (event.type) {
    case 'opened':
      event satisfies feed.Opened;
      return undefined;
    case 'disconnected':
    case 'gap':
    case 'stopped':
      return (event satisfies feed.Disconnected | feed.Gap | feed.Stopped).failure;
    case 'owner-changed':
    case 'engine-refused':
    case 'engine-recovered':
      event satisfies feed.OwnerChanged | feed.EngineRefused | feed.EngineRecovered;
      return undefined;
    default:
      return event satisfies never;
  }
};
// A log.
const log = feedLog('market');
emits<feed.FeedEvent>()(tradeFeedEvents$('market').pipe(log.append()));
log.read$({ speed: Infinity, from: { offset: 5 } }) satisfies Observable<LogRecord>;
log.read$().pipe(filter((each) => each instanceof feed.Frame)) satisfies Observable<feed.Frame & { offset: number }>;
// @ts-expect-error -- a path is required
feedLog();
// @ts-expect-error -- a speed is a number
log.read$({ speed: 'max' });
