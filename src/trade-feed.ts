import { defer, finalize, merge, noop, type Observable, of, retryWhen, Subject, tap } from 'rxjs';
import { type AccountUser, accountUser, useAccount } from './accounts/account-use.js';
import { callPlace } from './accounts/call-place.js';
import { resolveTicketOptions, type TicketSettings, type TradeFeedOptions } from './options.js';
import { checkFeed } from './protocol/feed.js';
import type { FeedEvent, LifecycleEvent } from './protocol/event.js';
import type { Feed } from './protocol/feed.js';
import type { Frame } from './protocol/frame.js';
import type { Ticket } from './protocol/ticket.js';
import { backoff } from './reconnect/reconnect.js';
import { reportReconnect } from './reconnect/report-reconnect.js';
import { withGaps } from './reconnect/with-gaps.js';
import { reportStop } from './reconnect/report-stop.js';
import { keepSockets, keptSockets } from './transport/kept-sockets.js';
import { openConnection } from './transport/open-connection.js';
import { requestTicket } from './transport/request-ticket.js';
import { feedInWorker$ } from './worker/feed-in-worker.js';
import { checkMovable } from './worker/moved-settings.js';

/**
 * Streams the frames of a feed, for as long as somebody is subscribed.
 *
 * Cold: each subscription requests a ticket, opens a connection of its own and reconnects, with a fresh ticket every time.
 * **An account has one connection**: a second subscription evicts the first (`connection-replaced`); share one instead.
 * Emits a {@link Frame} for each message of the service. Never completes. Errors with a `TradeFeedError` when reconnecting
 * makes no sense (its `verdict` is `stop`) or `backoff.maxAttempts` is used up; branch on its `code`.
 * Frames missed while disconnected are not replayed; {@link tradeFeedEvents$} tells of each such gap.
 *
 * @param feed - `market` or `raw` @defaultValue `'market'`
 * @param options - see {@link TradeFeedOptions}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself, before any I/O
 * @see the contract, sections 4 and 6
 * @example
 * ```ts
 * import { share } from 'rxjs';
 * import { tradeFeed$ } from 'rx-trade-feed';
 *
 * const frames$ = tradeFeed$('market').pipe(share());
 * frames$.subscribe({ next: (frame) => console.log(frame.text()), error: (failure) => console.error(failure.advice) });
 * ```
 */
export const tradeFeed$ = (feed: Feed = 'market', options?: TradeFeedOptions): Observable<Frame> =>
  feed$(feed, settled(feed, options, `tradeFeed$('${feed}') at ${callPlace()}`), noop);

const feed$ = (feed: Feed, settings: FeedSettings, tell: Tell): Observable<Frame> =>
  defer(() => {
    const received$ =
      settings.receiveIn === 'worker'
        ? feedInWorker$(feed, settings, tell, backoff(settings.backoff, reportReconnect(tell)))
        : feedHere$(feed, settings, tell);
    return received$.pipe(finalize(useAccount(settings, settings[accountUser])));
  });

/** The feed as the thread that subscribes receives it. */
export const feedHere$ = (feed: Feed, given: TicketSettings, told: Tell): Observable<Frame> =>
  defer(() => {
    const sockets = keepSockets(given);
    const settings = { ...given, [keptSockets]: sockets };
    const tell: Tell = (event) => {
      sockets.follow(event);
      told(event);
    };
    return of(feed).pipe(
      tap(ticketRequested(tell)),
      requestTicket(settings), //                                   Feed   -> Ticket   POST /v1/wss/tickets
      tap(ticketIssued(tell)),
      openConnection(settings, opened(tell)), //                    Ticket -> Frame    handshake, then frames
      retryWhen(backoff(settings.backoff, reportReconnect(tell))), //  what ended it -> when to resubscribe, or stop
      finalize(sockets.release),
    );
  });

/**
 * Streams the frames of a feed and what happens around them, in order: see {@link FeedEvent}.
 *
 * The same feed as {@link tradeFeed$}, with the same errors; events are distinguished by `type`. The last one before an error is `stopped`.
 *
 * @param feed - `market` or `raw` @defaultValue `'market'`
 * @param options - see {@link TradeFeedOptions}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself, before any I/O
 * @see the contract, section 6
 * @example
 * ```ts
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market').subscribe((event) => {
 *   if (event.type === 'gap') console.warn(`${event.durationMs} ms of frames may be missing`);
 * });
 * ```
 */
export const tradeFeedEvents$ = (feed: Feed = 'market', options?: TradeFeedOptions): Observable<FeedEvent> => {
  const settings = settled(feed, options, `tradeFeedEvents$('${feed}') at ${callPlace()}`);
  return defer(() => {
    const lifecycle = new Subject<LifecycleEvent>();
    const emit: Tell = (event) => lifecycle.next(event);
    return merge(lifecycle.pipe(withGaps()), feed$(feed, settings, emit).pipe(tap({ error: reportStop(emit) })));
  });
};

interface FeedSettings extends TicketSettings {
  readonly [accountUser]: AccountUser;
}

const settled = (feed: Feed, options: TradeFeedOptions | undefined, where: string): FeedSettings => {
  checkFeed(feed);
  return { [accountUser]: { where }, ...checkMovable(resolveTicketOptions(options)) };
};

type Tell = (event: LifecycleEvent) => void;

const ticketRequested = (tell: Tell) => (feed: Feed) => tell({ type: 'ticket-requested', at: Date.now(), feed });

const ticketIssued = (tell: Tell) => (ticket: Ticket) =>
  tell({ type: 'ticket-issued', at: Date.now(), feed: ticket.feed, expiresAt: ticket.expires_at });

// Numbers the connections of one subscription: 1, 2, …
const opened = (tell: Tell) => {
  let connection = 0;
  return (feed: Feed): number => {
    connection += 1;
    tell({ type: 'opened', at: Date.now(), feed, connection });
    return connection;
  };
};
