import { Agent } from 'node:https';
import * as feed from 'rx-trade-feed';
import { backoff, openConnection, requestTicket, tradeFeed$, tradeFeedEvents$ } from 'rx-trade-feed';
import { feedLog, type LogRecord } from 'rx-trade-feed/log';
import { filter, map, type Observable, of, retry, retryWhen, VirtualTimeScheduler } from 'rxjs';
import { Agent as UndiciAgent } from 'undici';
import { emits, type Same } from './emits.js';

// The composition of the feed, with `retryWhen` and with `retry`, and with an operator between its parts.
emits<feed.Frame>()(
  of('raw' as const).pipe(requestTicket(), openConnection(), retry({ delay: feed.retryDelay({ maxAttempts: 3 }) })),
);
emits<feed.Frame>()(
  of<feed.Feed>('raw').pipe(
    requestTicket(),
    map((ticket) => ({ ...ticket, deadlineMs: performance.now() + 1_000 })),
    openConnection(),
    retryWhen(backoff()),
  ),
);
openConnection({}, (name) => (name satisfies feed.Feed).length);
backoff({}, (reconnect) => (reconnect satisfies feed.Reconnect).failure.advice);
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

// The options, of which the guide has all: test/docs/tables.test.ts.
export const options: readonly feed.TradeFeedOptions[] = [
  { backoff: { jitter: 'equal', scheduler: new VirtualTimeScheduler() }, deliveryDelayMs: 'auto' },
  { classify: (failure, verdict) => (failure.code === 'client-too-slow' ? 'stop' : verdict) },
  { tls: { ca: 'pem', checkServerIdentity: () => undefined }, dispatcher: new UndiciAgent(), agent: new Agent() },
  // @ts-expect-error -- a key is a string
  { apiKey: 5 },
  // @ts-expect-error -- also if a function returns it
  { apiKey: () => 5 },
];

// The events are a union discriminated by `type`.
type Lifecycle = 'ticket-requested' | 'ticket-issued' | 'opened' | 'disconnected' | 'reconnecting' | 'gap' | 'stopped';
true satisfies Same<feed.FeedEvent['type'], Lifecycle | 'frame' | 'watermark'>;
declare const event: feed.FeedEvent;
if (event.type === 'frame') event satisfies feed.Frame;
// @ts-expect-error -- not every event has data: narrow by `type` first
export const unnarrowed = event.data as unknown;
if (event.type === 'ticket-issued') {
  // @ts-expect-error -- the event does not contain the ticket
  event satisfies { ticket: unknown };
}

// The messages of the channels.
type OfFeed = feed.Opened | feed.Disconnected | feed.Gap | feed.Stopped;
type OfCluster = feed.OwnerChanged | feed.EngineRefused | feed.EngineRecovered;
true satisfies Same<feed.FeedEventMessage['event'], OfFeed | OfCluster>;
// A log.
const log = feedLog('market');
emits<feed.FeedEvent>()(tradeFeedEvents$('market').pipe(log.append()));
log.read$({ speed: Infinity, from: { offset: 5 } }) satisfies Observable<LogRecord>;
log.read$().pipe(filter((each) => each instanceof feed.Frame)) satisfies Observable<feed.Frame & { offset: number }>;
// @ts-expect-error -- a path is required
feedLog();
// @ts-expect-error -- a speed is a number
log.read$({ speed: 'max' });
