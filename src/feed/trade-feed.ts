import { asyncScheduler, defer, finalize, noop, type Observable, tap } from 'rxjs';
import { checkFeed } from '../protocol/contract.js';
import type { FeedEvent } from '../protocol/event.js';
import type { LogEntry } from '../protocol/event-record.js';
import type { FeedState } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import { selective, wherePayload } from '../operators/items/where-payload.js';
import type { Frame, IsWanted } from '../protocol/frame.js';
import type { OnClosing } from '../transport/handshake.js';
import { loadHttpClient } from '../transport/network-clients.js';
import { checkReceiveIn } from '../worker/settings.js';
import { feedInWorker$ } from '../worker/feed-in-worker.js';
import { type AccountUser, callPlace, useAccount } from './accounts.js';
import { attempts$ } from './attempts.js';
import { observeFeed } from './diagnostics.js';
import { createLifecycle, type Emit, withEvents } from './lifecycle.js';
import { resolveTicketOptions, type TicketSettings, type TradeFeedOptions } from './options.js';

/**
 * Streams the frames of a feed while there is a subscriber.
 *
 * Cold: each subscription requests a ticket, opens its own connection and reconnects, with a fresh ticket every time.
 * **An account has one connection**: a second subscription kicks out the first (`connection-replaced`), so share one.
 * Emits a {@link Frame} for each message of the service. Never completes. Errors with a `TradeFeedError` if
 * reconnecting can't help (its `verdict` is `stop`) or `backoff.maxAttempts` is used up; branch on its `code`. If your
 * `classify` or `backoff.random` throws, the feed errors with that. Frames you miss while disconnected aren't replayed;
 * {@link tradeFeedEvents$} emits a `gap` for each outage. Emits a process warning if the first three attempts fail or
 * no connection opens within 5 s, and one that names both places if two subscriptions use one account; the option
 * `warnings` turns them off.
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
 * frames$.subscribe({
 *   next: (frame) => console.log(frame.text()),
 *   error: (failure) => console.error(failure.advice),
 * });
 * ```
 */
export const tradeFeed$ = (feed: Feed = 'market', options?: TradeFeedOptions): Observable<Frame> => {
  const settings = resolveFeedSettings(feed, options);
  const user = { where: `tradeFeed$('${feed}') at ${callPlace()}` };
  return selective((isWanted) => frames$(feed, settings, noop, { user, receivesNoEvents: true }, isWanted));
};

/**
 * Streams the frames of a feed and its lifecycle events, in order: see {@link FeedEvent}.
 *
 * Works like {@link tradeFeed$}, with the same errors; branch on each event's `type`. The last event before a
 * `TradeFeedError` is `stopped`.
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
 *   if (event.type === 'gap')
 *     console.warn(`frames may be missing: ${event.failure.code}`);
 * });
 * ```
 */
export const tradeFeedEvents$ = (feed: Feed = 'market', options?: TradeFeedOptions): Observable<FeedEvent> =>
  feedEvents$(feed, options, { user: { where: `tradeFeedEvents$('${feed}') at ${callPlace()}` } });

export interface FeedOwner {
  /** Named in the warning about two feeds that use one account. */
  readonly user: AccountUser;
  /** Called for each connection, and each worker, that starts to close. */
  readonly onClosing?: OnClosing | undefined;
  /** Subscribed to once a ticket is issued; its first value starts the handshake. Not with `receiveIn: 'worker'`. */
  readonly beforeHandshake?: Observable<unknown> | undefined;
  /** Whether the subscriber gets no lifecycle events. If so, the process is warned when no connection opens. */
  readonly receivesNoEvents?: boolean | undefined;
  /** Replaces the log and the channels of the feed: for an owner that turns a stop into other events. */
  readonly show?: ((entry: LogEntry) => void) | undefined;
  /** Returns the state before a subscription: an outage that its first connection ends. @defaultValue no feed */
  readonly before?: (() => FeedState) | undefined;
}

export const feedEvents$ = (
  feed: Feed,
  options: TradeFeedOptions | undefined,
  owner: FeedOwner,
): Observable<FeedEvent> => {
  const settings = resolveFeedSettings(feed, options);
  return selective((isWanted) => withEvents<FeedEvent>((deliver) => frames$(feed, settings, deliver, owner, isWanted)));
};

/** Loads the network clients in advance, so that the first connection doesn't wait for them. */
export const prepareConnections = async (): Promise<void> => {
  await loadHttpClient();
};

const frames$ = (
  feed: Feed,
  settings: TicketSettings,
  deliver: Emit,
  { user, onClosing, beforeHandshake, receivesNoEvents = false, show, before }: FeedOwner,
  isWanted: IsWanted | undefined,
): Observable<Frame> =>
  defer(() => {
    const { baseUrl, warnings = true } = settings;
    const observer = observeFeed({ feed, baseUrl, where: user.where }, receivesNoEvents && warnings, show);
    const account = useAccount(settings, user);
    const isInWorker = settings.receiveIn === 'worker';
    const lifecycle = createLifecycle(deliver, {
      observe: observer.event,
      before: before?.(),
      scheduler: isInWorker ? undefined : asyncScheduler,
    });
    // The worker can't call functions of this thread, and the log needs every frame, so both filter here.
    const filters = isInWorker || observer.frame !== undefined;
    const received$ = isInWorker
      ? feedInWorker$(feed, account.settings, lifecycle, onClosing)
      : attempts$(feed, account.settings, lifecycle, onClosing, beforeHandshake, filters ? undefined : isWanted);
    const watched$ = observer.frame ? received$.pipe(tap(observer.frame)) : received$;
    const filtered$ = filters && isWanted ? watched$.pipe(wherePayload(isWanted)) : watched$;
    return filtered$.pipe(finalize(lifecycle.end), finalize(account.end), finalize(observer.end));
  });

const resolveFeedSettings = (feed: Feed, options: TradeFeedOptions | undefined): TicketSettings => {
  checkFeed(feed);
  return checkReceiveIn(resolveTicketOptions(options));
};
