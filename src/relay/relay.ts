import { randomBytes } from 'node:crypto';
import {
  defer,
  filter,
  finalize,
  interval,
  NEVER,
  Observable,
  of,
  race,
  share,
  Subject,
  switchMap,
  take,
  tap,
  throwError,
  timer,
  type Unsubscribable,
} from 'rxjs';
import { type ClusterEvent, isClusterEvent, type RelayedEvent, type RelayedValue } from '../protocol/event.js';
import { LogPositions } from '../protocol/position.js';
import { clampMs } from '../protocol/validate.js';
import { NotAuthorizedError, RelayFullError } from './refusals.js';
import { type ClientHub, sendTo, Slot } from './relay-client.js';
import { type RelayMessage, splitStream } from './relay-message.js';
import {
  admission,
  type PendingReceiver,
  type RelayOptions,
  type RelayReceiver,
  type RelaySettings,
  resolveRelayOptions,
} from './relay-options.js';
import {
  refusedAfter,
  type RelayActivity,
  type RelayClientStatus,
  type RelayStatus,
  type Report,
} from './relay-reports.js';
import { Feeds } from './relay-run.js';

/** Sends one feed to many clients. See {@link createRelay}. */
export interface Relay {
  /**
   * Streams the messages of one client; each subscription is a client.
   *
   * Completes after the message `connect-again` or `complete`, and when the client reads nothing for four heartbeats.
   * Sends `connect-again` when the source has stopped, when the relay closes, after `maxAgeMs`, and after {@link
   * Relay.disconnect}. Errors with a {@link RelayFullError} when the relay refuses the client.
   */
  messages$(receiver?: RelayReceiver): Observable<RelayMessage>;
  /**
   * Emits each change of the clients and of the source, from now on. Completes when the relay is closed and the last
   * client has left.
   */
  readonly events$: Observable<RelayActivity>;
  /** Returns the current status. */
  status(): RelayStatus;
  /**
   * Makes the next client subscribe to the source again, after it has stopped or completed. Current clients still
   * receive the stored events, and `connect-again` or `complete`. You may call it in a listener of `source-stopped`.
   * Changes nothing while the source is active, nor in a closed relay.
   */
  restart(): void;
  /**
   * Subscribes to the source and stores its events, also without clients. In a cluster each replica needs it: a page of
   * another replica then continues here without a gap.
   *
   * @returns a subscription that ends it. It has no effect on a source that has ended: after {@link Relay.restart},
   *   call it again
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
   * Ends the subscription of the source and the streams of all clients, permanently. Clients that read receive the
   * remaining events, then all receive `connect-again`, so that they connect to another replica. Later clients are
   * refused.
   */
  close(): void;
}

/**
 * Creates a relay, which sends one feed to many clients: mainly to browsers, which can't use a ticket and must not have
 * a key.
 *
 * Subscribes to the source with the first client, once for all of them, and stays subscribed for `lingerMs` after the
 * last one has left. The newest events are stored once for all clients; each client has a position in that log. A
 * client that is slow or away for longer than the log reaches receives a `gap` with the number of frames (`missed`,
 * code `relay-behind`) and continues; other clients are not affected. When the source errors, current and later clients
 * receive the failure and `connect-again`. The relay does not subscribe to the source again, since each page that
 * reloads would take the connection from another client of the account. To subscribe again, call {@link Relay.restart}.
 *
 * If the source is another relay, set `maxFeedStops: Infinity`: `relayFeed$(url, { maxFeedStops: Infinity })`. With the
 * default it errors after five stops of the feed in a row, and this relay does not subscribe to it again.
 *
 * Over `read$` of a log, the ids of messages are those of its records. So a page continues without a gap after a restart
 * of the relay: read the log from some minutes ago on, and call {@link Relay.hold} before you accept pages.
 *
 * @param source - `tradeFeedEvents$`, `relayFeed$`, `read$` of a log or the `events$` of a cluster; it may also emit the
 *   values of another relay
 * @param options - see {@link RelayOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 * import { createRelay, relayHandler } from 'rx-trade-feed/relay';
 *
 * const relay = createRelay(tradeFeedEvents$('market'));
 * const handler = relayHandler(relay, { authorize: ({ headers }) => headers.cookie === 'session=of-your-app' });
 * createServer(handler).listen(3000);
 * ```
 */
export const createRelay = (
  source: Observable<RelayedEvent | RelayedValue<unknown> | ClusterEvent>,
  options?: RelayOptions,
): Relay => {
  const settings = resolveRelayOptions(options);
  const { heartbeatMs, maxAgeMs, scheduler } = settings;
  const events = new Subject<RelayActivity>();
  const report = (event: Report) => events.next({ ...event, at: scheduler.now() });
  const slots = new ClientSlots(settings, () => events.complete());
  const positions = new LogPositions();
  const isRelayed = (event: RelayedEvent | RelayedValue<unknown> | ClusterEvent): boolean => {
    positions.receive(event);
    return !isClusterEvent(event);
  };
  // The cast is safe: the runs also accept the values of another relay.
  const events$ = source.pipe(filter(isRelayed)) as Observable<RelayedEvent>;
  const feeds = new Feeds(events$, { ...settings, cluster: settings.cluster ?? positions }, report);
  const clients: ClientHub = {
    scheduler,
    heartbeats$: interval(clampMs(heartbeatMs), scheduler).pipe(share()),
    watermarks$: interval(watermarkMs, scheduler).pipe(share()),
    // At a random time in the last tenth, so that clients that joined together do not reconnect together.
    tooOld$: defer(() =>
      maxAgeMs === Infinity ? NEVER : timer(clampMs(maxAgeMs) * (1 - Math.random() / 10), scheduler),
    ),
    report,
    joined: 0,
  };
  let refused: RelayStatus['refused'];
  events.subscribe((event) => (refused = refusedAfter(refused, event)));
  return {
    messages$: (receiver = {}) => client$(slots, feeds, clients, receiver),
    events$: events.asObservable(),
    status: () => ({
      stored: feeds.stored,
      topics: feeds.topics.size,
      clients: slots.clients,
      authorizing: slots.authorizing,
      ...(refused && { refused }),
    }),
    restart: () => feeds.restart(),
    hold: () => feeds.join(undefined).batches$.subscribe(),
    disconnect: (id) => slots.disconnect(String(id)),
    close: () => {
      feeds.close();
      slots.close();
    },
  };
};

/** How often a client receives a watermark while no event arrives, in ms. The client uses it to close windows. */
const watermarkMs = 250;

const client$ = (
  slots: ClientSlots,
  feeds: Feeds,
  clients: ClientHub,
  receiver: PendingReceiver,
): Observable<RelayMessage> =>
  new Observable((subscriber) => {
    const { report } = clients;
    const sent$ = defer(() => {
      const slot = slots.take();
      const { user, select, sinceMs, response, [admission]: admission$ = of({ user, select, sinceMs }) } = receiver;
      const { id: lastEventId, stream } = splitStream(receiver.lastEventId);
      return race(admission$, slot.ended$.pipe(switchMap(() => throwError(closedError)))).pipe(
        take(1),
        tap((admitted) => slots.admit(slot, admitted.user, stream)),
        switchMap(({ select, sinceMs }) =>
          sendTo(subscriber, feeds.join(select), clients, slot, { lastEventId, response, sinceMs }),
        ),
        finalize(() => {
          // Reports before the slot is free: when the last slot of a closed relay is freed, `events$` completes.
          const { client } = slot;
          slot.client = undefined;
          if (client) report({ type: 'client-left', client: client.number, sent: client.sent, missed: client.missed });
          slots.free(slot);
        }),
      );
    });
    // `sendTo` emits the messages.
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

/** The slots for the clients of a relay. */
class ClientSlots {
  readonly #bounds: Pick<RelaySettings, 'maxClients' | 'maxClientsPerUser'>;
  readonly #onEmpty: () => void;
  readonly #taken = new Set<Slot>();
  #isClosed = false;

  /** @param onEmpty - called once the relay is closed and the last client has left */
  constructor(bounds: Pick<RelaySettings, 'maxClients' | 'maxClientsPerUser'>, onEmpty: () => void) {
    this.#bounds = bounds;
    this.#onEmpty = onEmpty;
  }

  get authorizing(): number {
    return [...this.#taken].filter(({ admitted }) => admitted === undefined).length;
  }

  get clients(): readonly RelayClientStatus[] {
    return [...this.#taken].flatMap(({ client, admitted }) => {
      if (client === undefined) return [];
      const { number, since, sent, missed } = client;
      return [{ client: number, ...(admitted?.user !== undefined && { user: admitted.user }), since, sent, missed }];
    });
  }

  /** @throws RelayFullError when no slot is free */
  take(): Slot {
    const { maxClients } = this.#bounds;
    if (this.#isClosed) throw closedError();
    if (this.#taken.size >= maxClients) throw new RelayFullError(`There are ${maxClients} clients. Retry later.`);
    const slot = new Slot();
    this.#taken.add(slot);
    return slot;
  }

  /**
   * Admits the client of a slot. Ends the stream of the same user that it continues, which may be on a connection that
   * is dead but not closed. The name of a replaced stream is gone, so a page that was replaced by its duplicate cannot
   * replace it in turn.
   *
   * @param continued - the name of the stream that the client continues
   * @throws RelayFullError when the user has as many streams as allowed, or was disconnected in the meantime
   */
  admit(slot: Slot, user: string | undefined, continued: string | undefined): void {
    if (user === undefined) {
      slot.admitted = { user, stream: undefined };
      return;
    }
    const { maxClientsPerUser } = this.#bounds;
    if (slot.disconnected.has(user))
      throw new RelayFullError('The session of this user ended meanwhile. Retry later.', 'session-ended');
    const others = this.#of(user);
    const replaced = others.find(({ admitted }) => continued !== undefined && admitted?.stream === continued);
    if (others.length - (replaced ? 1 : 0) >= maxClientsPerUser)
      throw new RelayFullError(`This user has ${maxClientsPerUser} streams. Retry later.`, 'user');
    slot.admitted = { user, stream: maxClientsPerUser < Infinity ? randomBytes(4).toString('hex') : undefined };
    replaced?.end('replaced');
  }

  free(slot: Slot): void {
    this.#taken.delete(slot);
    if (this.#isClosed && this.#taken.size === 0) this.#onEmpty();
  }

  /** Also refuses this user in authorizations that have already started. */
  disconnect(user: string): number {
    for (const { admitted, disconnected } of this.#taken) if (admitted === undefined) disconnected.add(user);
    const slots = this.#of(user);
    for (const slot of slots) slot.end('sessionEnded');
    return slots.length;
  }

  close(): void {
    this.#isClosed = true;
    for (const slot of [...this.#taken]) slot.end('closing');
    if (this.#taken.size === 0) this.#onEmpty();
  }

  // A replaced stream still ends, but no longer counts for its user.
  #of(user: string): readonly Slot[] {
    return [...this.#taken].filter(({ admitted, endReason }) => admitted?.user === user && endReason !== 'replaced');
  }
}

const closedError = (): RelayFullError => new RelayFullError('The relay is closed. Retry later.', 'closed');
