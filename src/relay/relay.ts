import {
  defer,
  filter,
  finalize,
  interval,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  race,
  type SchedulerLike,
} from 'rxjs';
import { share, Subject, switchMap, take, tap, throwError, timer, type Unsubscribable } from 'rxjs';
import type { OwnerChanged, RelayedEvent } from '../protocol/event.js';
import type { RelayedValue } from '../protocol/relayed-value.js';
import { clampMs } from '../protocol/rules.js';
import { clientMessages$ } from './client-messages.js';
import { ClientSlots, closedError, type Slot } from './client-slots.js';
import type { EndReason } from './relay-client.js';
import type { RelayActivity } from './relay-activity.js';
import { RelayFullError } from './relay-full-error.js';
import type { RelayMessage } from './relay-message.js';
import { type RelayOptions, resolveRelayOptions } from './relay-options.js';
import { authorization, type PendingReceiver, type RelayReceiver, selection } from './relay-receiver.js';
import { type RelayStatus, relayStatus } from './relay-status.js';
import { shareSource } from './shared-source.js';
import { TopicError } from './topic.js';
import { TopicRuns } from './topic-runs.js';

/** Sends one feed to many clients. See {@link createRelay}. */
export interface Relay {
  /**
   * Streams the messages of one client; each subscription is a client.
   *
   * Completes after the message `connect-again` or `complete`, and when the client reads nothing for four heartbeats. Sends `connect-again`
   * when the source has stopped, when the relay closes, after `maxAgeMs`, and after {@link Relay.disconnect}.
   * Errors with a {@link RelayFullError} when the relay refuses the client.
   */
  messages$(receiver?: RelayReceiver): Observable<RelayMessage>;
  /** Emits each change of the clients and of the source, from now on. Completes when the relay is closed and the last client has left. */
  readonly events$: Observable<RelayActivity>;
  /** Returns the current status. */
  status(): RelayStatus;
  /**
   * Makes the next client subscribe to the source again, after it has stopped or completed. Current clients still receive the stored events, and
   * `connect-again` or `complete`. You may call it in a listener of `source-stopped`. Changes nothing while the source is active, nor in a closed
   * relay.
   */
  restart(): void;
  /**
   * Subscribes to the source and stores its events, also without clients. In a cluster each replica needs it: a page of another replica then
   * continues here without a gap.
   *
   * @returns a subscription that ends it. It has no effect on a source that has ended: after {@link Relay.restart}, call it again
   */
  hold(): Unsubscribable;
  /**
   * Ends the streams of one user, for example after a sign-out. Each page receives `connect-again`, and must be authorized again.
   *
   * @param id - the `id` that `authorize` returned, or {@link RelayReceiver.user}
   * @returns the number of ended streams
   */
  disconnect(id: string): number;
  /**
   * Ends the subscription of the source and the streams of all clients, permanently. Clients that read receive the remaining events, then all
   * receive `connect-again`, so that they connect to another replica. Later clients are refused.
   */
  close(): void;
}

/**
 * Creates a relay, which sends one feed to many clients: mainly to browsers, which cannot use a ticket and must not have a key.
 *
 * Subscribes to the source with the first client, once for all of them, and stays subscribed for `lingerMs` after the last one has left.
 * The newest events are stored once for all clients; each client has a position in that log. A client that is slow or away for longer than the
 * log reaches receives a `gap` with the number of frames (`missed`, code `relay-behind`) and continues; other clients are not affected. When the
 * source errors, current and later clients receive the failure and `connect-again`. The relay does not subscribe to the source again, since each
 * page that reloads would take the connection from another client of the account. To subscribe again, call {@link Relay.restart}.
 *
 * If the source is another relay, set `maxFeedStops: Infinity`: `relayFeed$(url, { maxFeedStops: Infinity })`. With the default it errors after
 * five stops of the feed in a row, and this relay does not subscribe to it again.
 *
 * @param source - `tradeFeedEvents$`, `replay$`, `relayFeed$` or the `events$` of a cluster; it may also emit the values of another relay
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
  source: Observable<RelayedEvent | RelayedValue<unknown> | OwnerChanged>,
  options?: RelayOptions,
): Relay => {
  const settings = resolveRelayOptions(options);
  const { heartbeatMs, maxAgeMs, scheduler } = settings;
  const now = () => scheduler.now();
  const events = new Subject<RelayActivity>();
  const slots = new ClientSlots(settings);
  const onStop = (error: unknown) => events.next({ type: 'source-stopped', at: now(), error });
  // The cast is safe: the run and the topics also accept the values of another relay.
  const events$ = source.pipe(filter(({ type }) => type !== 'owner-changed')) as Observable<RelayedEvent>;
  const shared = shareSource(events$, scheduler, onStop);
  const unlessOfSource = (report: (error: unknown) => void) => (error: unknown) => {
    if (!shared.hasFailedWith(error)) report(error);
  };
  const onTopicStop = (error: unknown) =>
    events.next({ type: 'topic-stopped', at: now(), error: error instanceof TopicError ? error.cause : error });
  const topics = new TopicRuns(shared.events$, settings, unlessOfSource(onStop), unlessOfSource(onTopicStop));
  const ticks = {
    heartbeats$: interval(clampMs(heartbeatMs), scheduler).pipe(share()),
    watermarks$: interval(watermarkMs, scheduler).pipe(share()),
  };
  let joinedSoFar = 0;
  slots.emptied$.subscribe(() => events.complete());

  const joined$ = (slot: Slot, receiver: PendingReceiver): Observable<RelayMessage> => {
    const run$ = topics.run$(receiver[selection] ? receiver[selection]() : receiver.select);
    const client = (joinedSoFar += 1);
    const ended$ = merge(slot.ended$, tooOld$(maxAgeMs, scheduler));
    return clientMessages$(run$, ticks, receiver, ended$, scheduler, {
      joined: (state) => {
        slot.client = { client, since: now(), state };
        events.next({ type: 'client-joined', at: now(), client, joined: state.joined });
      },
      behind: ({ missed }) => events.next({ type: 'client-behind', at: now(), client, missed }),
      stuck: () => events.next({ type: 'client-stuck', at: now(), client }),
    });
  };

  // Reports before the slot is free: when the last slot of a closed relay is freed, `events$` completes.
  const leave = (slot: Slot): void => {
    const { client: left } = slot;
    slot.client = undefined;
    if (left !== undefined) {
      const { client, state } = left;
      events.next({ type: 'client-left', at: now(), client, sent: state.sent, missed: state.missed });
    }
    slot.unsubscribe();
  };

  return {
    messages$: (receiver = {}) =>
      defer(() => {
        const slot = slots.take();
        return admitted$(slot, receiver).pipe(
          tap((user) => slots.admit(slot, user)),
          switchMap(() => joined$(slot, receiver)),
          finalize(() => leave(slot)),
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
    status: () => relayStatus(topics, slots),
    restart: () => {
      shared.restart();
      topics.restart();
    },
    hold: () => topics.run$(undefined).subscribe(),
    disconnect: (id) => slots.disconnect(id),
    close: () => {
      topics.close();
      slots.close();
    },
  };
};

/** How often a client receives a watermark while no event arrives, in ms. The client uses it to close windows. */
const watermarkMs = 250;

/** Emits the user of a client once it is authorized. Errors if the relay closes first. */
const admitted$ = (slot: Slot, { user, [authorization]: authorization$ = of(user) }: PendingReceiver) =>
  race(authorization$, slot.ended$.pipe(switchMap(() => throwError(closedError)))).pipe(take(1));

/** Emits at a random time in the last tenth of `maxAgeMs`, so that clients that joined together do not reconnect together. */
const tooOld$ = (maxAgeMs: number, scheduler: SchedulerLike): Observable<EndReason> =>
  maxAgeMs === Infinity
    ? NEVER
    : timer(clampMs(maxAgeMs) * (1 - Math.random() / 10), scheduler).pipe(map(() => 'sessionEnded'));
