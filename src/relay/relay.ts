import {
  defer,
  finalize,
  interval,
  NEVER,
  Observable,
  of,
  race,
  Subject,
  switchMap,
  take,
  tap,
  throwError,
  timer,
  type Unsubscribable,
} from 'rxjs';
import { contextHere, inOwnContext, runIn, shareIn } from '../operators/items/async-context.js';
import type { ClusterEvent, RelayedEvent, RelayedValue } from '../protocol/event.js';
import { clampMs } from '../protocol/validate.js';
import { NotAuthorizedError, RelayFullError } from './refusals.js';
import { ClientSlots, closedError } from './slots.js';
import { sendTo } from './page.js';
import { type RelayHub, ReplaySlots } from './hub.js';
import { type RelayMessage, splitStream } from './relay-message.js';
import {
  admission,
  type PendingReceiver,
  type RelayOptions,
  type RelayReceiver,
  resolveRelayOptions,
} from './relay-options.js';
import { refusedAfter, type RelayActivity, type RelayStatus, type Report } from './relay-reports.js';
import { Feeds } from './feeds.js';
import { inTurn, turnsOf } from './turns.js';

/** Sends one feed to many clients. See {@link createRelay}. */
export interface Relay {
  /**
   * Streams the messages of one client; each subscription is a client.
   *
   * Completes after the message `connect-again` or `complete`, or when the client reads nothing for four heartbeats.
   * Sends `connect-again` when the source has stopped, when the relay closes, after `maxAgeMs`, and after {@link
   * Relay.disconnect}. Errors with a {@link RelayFullError} when the relay refuses the client.
   */
  messages$(receiver?: RelayReceiver): Observable<RelayMessage>;
  /**
   * Emits each change of the clients and of the source from now on. Completes once the relay is closed and the last
   * client has left.
   */
  readonly events$: Observable<RelayActivity>;
  /** Returns the current status. */
  status(): RelayStatus;
  /**
   * Makes the next client subscribe to the source again after it has stopped or completed. Current clients still
   * receive the stored events, and `connect-again` or `complete`. You may call it in a listener for `source-stopped`.
   * Does nothing while the source is active, or once the relay is closed.
   */
  restart(): void;
  /**
   * Subscribes to the source and stores its events even if there are no clients. In a cluster every replica needs it,
   * so that a page from another replica continues here and sees no gap.
   *
   * @returns a subscription that ends it. It can't revive an ended source: after {@link Relay.restart}, call it again
   */
  hold(): Unsubscribable;
  /**
   * Ends the streams of one user, for example after a sign-out. Each page receives `connect-again`, and must be
   * authorized again.
   *
   * @param id - the `id` that `authorize` returned, or {@link RelayReceiver.user}
   * @returns the number of ended streams
   */
  disconnect(id: string | number): number;
  /**
   * Ends the subscription to the source and all streams, for good. Clients that still read receive the remaining
   * events, then all receive `connect-again` and move to another replica. Later clients are refused.
   */
  close(): void;
}

/**
 * Creates a relay, which sends one feed to many clients: mainly to browsers, which can't use a ticket and must not have
 * a key.
 *
 * Subscribes to the source with the first client, once for all of them, and stays subscribed for `lingerMs` after the
 * last one has left. The newest events are stored once, and each client has a position in that log. A client that's
 * slow, or away for longer than the log reaches, receives a `gap` with the number of frames (`missed`, code
 * `relay-behind`) and continues; other clients aren't affected. When the source errors, current and later clients
 * receive the failure and `connect-again`. The relay doesn't subscribe again, since each page that reloads would take
 * the connection from another client of the account. To subscribe again, call {@link Relay.restart}.
 *
 * If the source is another relay, set `maxFeedStops: Infinity`: `relayFeed$(url, { maxFeedStops: Infinity })`.
 * Otherwise it errors after five stops of the feed in a row, and this relay doesn't subscribe again.
 *
 * Over `read$` of a log, message ids are those of the records. Pass the log as `log` too: pages then continue across a
 * restart of the relay and see no gap. Call {@link Relay.hold} before you accept pages.
 *
 * @param source - `tradeFeedEvents$`, `relayFeed$`, `read$` of a log or the `events$` of a cluster; it may also emit
 *   the values of another relay
 * @param options - see {@link RelayOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 * import { createRelay, relayHandler } from 'rx-trade-feed/relay';
 *
 * const relay = createRelay(tradeFeedEvents$('market'));
 * const handler = relayHandler(relay, {
 *   authorize: ({ headers }) => headers.cookie === 'session=of-your-app',
 * });
 * createServer(handler).listen(3000);
 * ```
 */
export const createRelay = (
  source: Observable<RelayedEvent | RelayedValue<unknown> | ClusterEvent>,
  options?: RelayOptions,
): Relay => {
  const settings = resolveRelayOptions(options);
  const home = contextHere();
  const { heartbeatMs, maxAgeMs, scheduler } = settings;
  const events = new Subject<RelayActivity>();
  const report = (event: Report) => events.next({ ...event, at: scheduler.now() });
  const slots = new ClientSlots(settings, () => events.complete());
  const hub: RelayHub = {
    scheduler,
    home,
    heartbeats$: interval(clampMs(heartbeatMs), scheduler).pipe(shareIn(home)),
    watermarks$: interval(watermarkMs, scheduler).pipe(shareIn(home)),
    // At a random time in the last tenth, so clients that joined together don't reconnect together.
    tooOld$: defer(() =>
      maxAgeMs === Infinity ? NEVER : timer(clampMs(maxAgeMs) * (1 - Math.random() / 10), scheduler),
    ),
    report,
    turns: turnsOf(scheduler),
    replays: new ReplaySlots(settings),
    joined: 0,
  };
  // The cast is safe: runs also accept values of another relay.
  const feeds = new Feeds(source as Observable<RelayedEvent | ClusterEvent>, settings, hub);
  let refused: RelayStatus['refused'];
  let failedReplays = 0;
  events.subscribe((event) => {
    refused = refusedAfter(refused, event);
    if (event.type === 'replay-failed') failedReplays += 1;
  });
  return {
    messages$: (receiver = {}) => client$(slots, feeds, hub, receiver).pipe(inOwnContext()),
    events$: events.pipe(inOwnContext()),
    status: () => ({
      stored: feeds.stored,
      topics: feeds.topics.size,
      clients: slots.clients,
      authorizing: slots.authorizing,
      failedReplays,
      ...(refused && { refused }),
    }),
    restart: () => runIn(home, () => feeds.restart()),
    hold: () => feeds.join(undefined).kept$.subscribe(),
    disconnect: (id) => slots.disconnect(String(id)),
    close: () => {
      runIn(home, () => feeds.close());
      slots.close();
    },
  };
};

/** How often a client receives a watermark while no events arrive, in ms. Clients use it to close windows. */
const watermarkMs = 250;

const client$ = (
  slots: ClientSlots,
  feeds: Feeds,
  hub: RelayHub,
  receiver: PendingReceiver,
): Observable<RelayMessage> =>
  new Observable((subscriber) => {
    const { report, turns } = hub;
    // Hundreds of requests can arrive in one turn. `sendTo` emits the messages.
    const sent$ = of(undefined).pipe(
      inTurn(turns, 'request'),
      switchMap(() => {
        const slot = slots.take();
        const { user, select, sinceMs, response, [admission]: admission$ = of({ user, select, sinceMs }) } = receiver;
        const { id: lastEventId, stream } = splitStream(receiver.lastEventId);
        const closed$ = slot.ended$.pipe(
          inTurn(turns, 'live'),
          switchMap(() => throwError(closedError)),
        );
        return race(admission$.pipe(inTurn(turns, 'join')), closed$).pipe(
          take(1),
          tap((admitted) => slots.admit(slot, admitted.user, stream)),
          switchMap(({ select, sinceMs }) =>
            sendTo(subscriber, feeds.join(select), hub, slot, { lastEventId, response, sinceMs }),
          ),
          finalize(() => {
            // Reports before freeing the slot: freeing the last one of a closed relay completes `events$`.
            const { client } = slot;
            slot.client = undefined;
            if (client)
              report({ type: 'client-left', client: client.number, sent: client.sent, missed: client.missed });
            slots.free(slot);
          }),
        );
      }),
    );
    return sent$.subscribe({
      error: (error: unknown) => {
        if (error instanceof RelayFullError) report({ type: 'client-refused', reason: error.reason });
        if (error instanceof NotAuthorizedError && error.status === 500)
          report({ type: 'client-failed', error: error.cause });
        subscriber.error(error);
      },
      complete: () => subscriber.complete(),
    });
  });
