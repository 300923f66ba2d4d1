import { defer, finalize, interval, map, merge, NEVER, type Observable, of, race, type SchedulerLike } from 'rxjs';
import { share, Subject, switchMap, take, tap, throwError, timer } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import type { RelayedValue } from '../protocol/relayed-value.js';
import { clampMs } from '../protocol/rules.js';
import { admission, type AskingReceiver, clientMessages$, type RelayReceiver, selection } from './client-messages.js';
import type { SentAway } from './relay-client.js';
import type { RelayEvent } from './relay-event.js';
import { RelayFullError } from './relay-full-error.js';
import type { RelayMessage } from './relay-message.js';
import { type RelayOptions, resolveRelayOptions } from './relay-options.js';
import { closedError, type Seat, Seats } from './seats.js';
import { shareSource } from './shared-source.js';
import { TopicError } from './topic.js';
import { Topics } from './topics.js';

/** How it stands with a relay. */
export interface RelayStatus {
  /** Events held, of all topics together, and their bytes. */
  readonly held: { readonly events: number; readonly bytes: number };
  readonly clients: readonly RelayClientStatus[];
  /** How many topics of `select` there are, with those that are kept for `lingerMs`. A number that grows shows operators created anew. */
  readonly topics: number;
  /** How many further clients wait for `authorize`: they have a place of `maxClients` already. */
  readonly authorizing: number;
}

/** How it stands with one client. */
export interface RelayClientStatus {
  /** Which one: 1, 2, … */
  readonly client: number;
  /** The id of its user, if `authorize` gave one. */
  readonly user?: string;
  /** Since when, in epoch ms. */
  readonly since: number;
  /** How many frames it was sent. */
  readonly sent: number;
  /** How many frames it was not sent, and told of. */
  readonly missed: number;
}

/** Hands one feed on to many. {@link createRelay} makes it. */
export interface Relay {
  /**
   * Streams the messages for one client; each subscription is a client.
   *
   * Completes after the message `connect-again` or `complete`, and when the client reads nothing for four heartbeats. `connect-again` comes
   * when the source has stopped, when the relay is closed, after `maxAgeMs`, and by {@link Relay.disconnect}.
   * Errors with a {@link RelayFullError} when there is no room.
   */
  messages$(receiver?: RelayReceiver): Observable<RelayMessage>;
  /** What happens to the clients, from now on. Completes when the relay is closed and the last client has left. */
  readonly events$: Observable<RelayEvent>;
  /** Tells how it stands. */
  status(): RelayStatus;
  /**
   * Lets the next client subscribe to the source again, after it has stopped or completed. Clients that are here still get what is held for
   * them, and `connect-again` or `complete`. It may be called from a listener of `source-stopped`. Changes nothing while the source goes on,
   * nor in a relay that is closed.
   */
  restart(): void;
  /**
   * Ends the streams of one user, such as one who signs out: each page is told to connect again, and must be authorized again.
   *
   * @param id - what `authorize` gave as `id`, or {@link RelayReceiver.user}
   * @returns the number of streams that are ended
   */
  disconnect(id: string): number;
  /**
   * Ends the subscription of the source and the stream of every client, for good. Clients get what they were not sent yet, unless they do not
   * read, and the message `connect-again`, so that they go on elsewhere. Clients that come later are refused.
   */
  close(): void;
}

/**
 * Hands one feed on to many clients: browsers above all, which cannot use a ticket and must not hold a key.
 *
 * Subscribes to the source with the first client, once for all of them, and stays subscribed for `lingerMs` after the last one left.
 * The newest events are held once, whatever the number of clients; a client is a place in that log. Who is slow or away for longer than
 * the log reaches is told of a `gap` with the number of frames (`missed`, code `relay-behind`) and goes on; nobody else notices. When the source
 * errors, clients are told why and to connect again, and so is everyone who comes after that: the source is not subscribed to again, since a page
 * that is loaded anew must not evict another client of the account. {@link Relay.restart} is for that.
 *
 * A source of another relay needs `maxFeedStops: Infinity`: `relayFeed$(url, { maxFeedStops: Infinity })`. With the default it errors after five
 * stops of the feed behind it, and this relay does not subscribe to it again.
 *
 * @param source - of `tradeFeedEvents$`, `replay$` or `relayFeed$`, also with the values that another relay made
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
  source: Observable<RelayedEvent | RelayedValue<unknown>>,
  options?: RelayOptions,
): Relay => {
  const settings = resolveRelayOptions(options);
  const { heartbeatMs, maxAgeMs, scheduler } = settings;
  const now = () => scheduler.now();
  const events = new Subject<RelayEvent>();
  const seats = new Seats(settings);
  const stopped = (error: unknown) => events.next({ type: 'source-stopped', at: now(), error });
  // A topic passes the values of another relay on like events.
  const shared = shareSource(source as Observable<RelayedEvent>, scheduler, stopped);
  const unlessOfSource = (report: (error: unknown) => void) => (error: unknown) => {
    if (!shared.hasFailedWith(error)) report(error);
  };
  const topicStopped = (error: unknown) =>
    events.next({ type: 'topic-stopped', at: now(), error: error instanceof TopicError ? error.cause : error });
  const topics = new Topics(shared.events$, settings, unlessOfSource(stopped), unlessOfSource(topicStopped));
  const ticks = {
    heartbeats$: interval(clampMs(heartbeatMs), scheduler).pipe(share()),
    watermarks$: interval(watermarkMs, scheduler).pipe(share()),
  };
  let joinedSoFar = 0;
  seats.emptied$.subscribe(() => events.complete());

  const joined$ = (seat: Seat, receiver: AskingReceiver): Observable<RelayMessage> => {
    const run$ = topics.run$(receiver[selection] ? receiver[selection]() : receiver.select);
    const client = (joinedSoFar += 1);
    const sentAway$ = merge(seat.sentAway$, tooOld$(maxAgeMs, scheduler));
    return clientMessages$(run$, ticks, receiver, sentAway$, scheduler, {
      joined: (state) => {
        seat.client = { client, since: now(), state };
        events.next({ type: 'client-joined', at: now(), client, joined: state.joined });
      },
      behind: ({ missed }) => events.next({ type: 'client-behind', at: now(), client, missed }),
      stuck: () => events.next({ type: 'client-stuck', at: now(), client }),
    });
  };

  // Reported while the place is taken: when the last one is free, the events of a relay that is closed are complete.
  const leave = (seat: Seat): void => {
    const { client: left } = seat;
    seat.client = undefined;
    if (left !== undefined) {
      const { client, state } = left;
      events.next({ type: 'client-left', at: now(), client, sent: state.sent, missed: state.missed });
    }
    seat.unsubscribe();
  };

  return {
    messages$: (receiver = {}) =>
      defer(() => {
        const seat = seats.take();
        return admitted$(seat, receiver).pipe(
          tap((user) => seats.admit(seat, user)),
          switchMap(() => joined$(seat, receiver)),
          finalize(() => leave(seat)),
        );
      }).pipe(
        tap({
          error: (error: unknown) => {
            if (error instanceof RelayFullError)
              events.next({ type: 'client-refused', at: now(), reason: error.reason });
          },
        }),
      ),
    events$: events.asObservable(),
    status: () => ({
      held: {
        events: topics.held.reduce((sum, { log }) => sum + log.size, 0),
        bytes: topics.held.reduce((sum, { log }) => sum + log.bytes, 0),
      },
      topics: topics.size,
      clients: seats.clients.map(({ client, user, since, state: { sent, missed } }) => ({
        ...{ client, since, sent, missed },
        ...(user !== undefined && { user }),
      })),
      authorizing: seats.authorizing,
    }),
    restart: () => {
      shared.restart();
      topics.restart();
    },
    disconnect: (id) => seats.disconnect(id),
    close: () => {
      topics.close();
      seats.close();
    },
  };
};

/** How often a client that has everything gets a watermark while no event comes, in ms: its windows close by it. */
const watermarkMs = 250;

/** Emits the user of a client once it may receive. Errors when the relay is closed before. */
const admitted$ = (seat: Seat, { user, [admission]: admission$ = of(user) }: AskingReceiver) =>
  race(admission$, seat.sentAway$.pipe(switchMap(() => throwError(closedError)))).pipe(take(1));

/** Emits when a stream is too old, within the last tenth of its time: clients that came together do not come back together. */
const tooOld$ = (maxAgeMs: number, scheduler: SchedulerLike): Observable<SentAway> =>
  maxAgeMs === Infinity
    ? NEVER
    : timer(clampMs(maxAgeMs) * (1 - Math.random() / 10), scheduler).pipe(map(() => 'sessionEnded'));
