import {
  auditTime,
  catchError,
  concat,
  defer,
  endWith,
  filter,
  finalize,
  interval,
  map,
  merge,
  NEVER,
  type Observable,
} from 'rxjs';
import { ReplaySubject, share, startWith, Subject, takeUntil, tap, throwError, timer } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import { clampMs } from '../protocol/rules.js';
import { clientMessages$, type RelayReceiver } from './client-messages.js';
import type { RelayClient } from './relay-client.js';
import type { RelayEvent } from './relay-event.js';
import { RelayFullError } from './relay-full-error.js';
import type { RelayMessage } from './relay-message.js';
import { type RelayOptions, type RelaySettings, resolveRelayOptions } from './relay-options.js';
import { RelayRun } from './relay-run.js';

/** How it stands with a relay. */
export interface RelayStatus {
  /** Events held, and their bytes. */
  readonly held: { readonly events: number; readonly bytes: number };
  readonly clients: readonly RelayClientStatus[];
}

/** How it stands with one client. */
export interface RelayClientStatus {
  /** Which one: 1, 2, … */
  readonly client: number;
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
   * Completes behind the message `stop` or `complete`, when the relay is closed, and when the client reads nothing for four heartbeats.
   * Errors with a {@link RelayFullError} when there is no room.
   */
  messages$(receiver?: RelayReceiver): Observable<RelayMessage>;
  /** What happens to the clients, from now on. Completes when the relay is closed. */
  readonly events$: Observable<RelayEvent>;
  /** Tells how it stands. */
  status(): RelayStatus;
  /**
   * Lets the next client subscribe to the source again, after it has stopped or completed. Changes nothing while the source goes on, nor in
   * a relay that is closed.
   */
  restart(): void;
  /** Ends the stream of every client and the subscription of the source, for good. */
  close(): void;
}

/**
 * Hands one feed on to many clients: browsers above all, which cannot use a ticket and must not hold a key.
 *
 * Subscribes to the source with the first client, once for all of them, and stays subscribed for `lingerMs` after the last one left.
 * The newest events are held once, whatever the number of clients; a client is a place in that log. Who is slow or away for longer than
 * the log reaches is told of a `gap` with the number of frames (`missed`, code `relay-behind`) and goes on; nobody else notices. When the source
 * errors, clients are told of the stop, and so is everyone who comes after that: the source is not subscribed to again, since a page
 * that is loaded anew must not evict another client of the account. {@link Relay.restart} is for that.
 *
 * @param source - of `tradeFeedEvents$`, or of `replay$`
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
export const createRelay = (source: Observable<RelayedEvent>, options?: RelayOptions): Relay => {
  const settings = resolveRelayOptions(options);
  const { heartbeatMs, lingerMs, maxClients, scheduler } = settings;
  const now = () => scheduler.now();
  const events = new Subject<RelayEvent>();
  const closed = new Subject<void>();
  const restarted = new Subject<void>();
  const clients = new Map<number, { readonly since: number; readonly its: RelayClient }>();
  let run: RelayRun | undefined;
  let joinedSoFar = 0;
  let isClosed = false;

  const isOver = () => isClosed || run?.end !== undefined;

  const run$ = defer(() => {
    run = new RelayRun(settings, now);
    return running$(source, run, settings, (error) => events.next({ type: 'source-stopped', at: now(), error }));
  }).pipe(
    finalize(() => (run = undefined)),
    takeUntil(merge(closed, restarted)),
    share({
      connector: () => new ReplaySubject(1),
      // A stopped feed stays stopped, also one that stops in that time: whoever comes is told so, and nobody is evicted by a page that is
      // loaded anew.
      resetOnRefCountZero: () => (isOver() ? NEVER : timer(clampMs(lingerMs), scheduler).pipe(filter(() => !isOver()))),
    }),
  );
  const heartbeats$ = interval(clampMs(heartbeatMs), scheduler).pipe(share());
  const watermarks$ = interval(watermarkMs, scheduler).pipe(share());

  const refused$ = (what: string): Observable<never> => {
    events.next({ type: 'client-refused', at: now() });
    return throwError(() => new RelayFullError(`${what} Come back later.`));
  };

  const joined$ = (receiver: RelayReceiver): Observable<RelayMessage> => {
    const client = (joinedSoFar += 1);
    return clientMessages$(run$, { heartbeats$, watermarks$ }, receiver, now, {
      joined: (its) => {
        clients.set(client, { since: now(), its });
        events.next({ type: 'client-joined', at: now(), client, joined: its.joined });
      },
      behind: ({ missed }) => events.next({ type: 'client-behind', at: now(), client, missed }),
      stuck: () => events.next({ type: 'client-stuck', at: now(), client }),
    }).pipe(
      finalize(() => {
        const { sent = 0, missed = 0 } = clients.get(client)?.its ?? {};
        clients.delete(client);
        events.next({ type: 'client-left', at: now(), client, sent, missed });
      }),
    );
  };

  return {
    messages$: (receiver = {}) =>
      defer(() => {
        if (isClosed) return refused$('The relay is closed.');
        return clients.size < maxClients ? joined$(receiver) : refused$(`There are ${maxClients} clients.`);
      }),
    events$: events.asObservable(),
    status: () => ({
      held: { events: run?.log.size ?? 0, bytes: run?.log.bytes ?? 0 },
      clients: [...clients].map(([client, { since, its }]) => ({ client, since, sent: its.sent, missed: its.missed })),
    }),
    restart: () => {
      if (isOver()) restarted.next();
    },
    close: () => {
      isClosed = true;
      closed.next();
      events.complete();
    },
  };
};

/** How often a client that has everything gets a watermark while no event comes, in ms: its windows close by it. */
const watermarkMs = 250;

/** Fills the run with what the source emits. Emits it at once, and again at most every `batchMs` when there is something new in it. */
const running$ = (
  source: Observable<RelayedEvent>,
  run: RelayRun,
  { batchMs, scheduler }: RelaySettings,
  onStop: (error: unknown) => void,
): Observable<RelayRun> =>
  concat(
    source.pipe(
      map((event) => run.append(event)),
      endWith(undefined),
      tap({ complete: () => run.complete() }),
      catchError((error: unknown) => {
        run.stop(error);
        onStop(error);
        return [undefined];
      }),
      auditTime(clampMs(batchMs), scheduler),
    ),
    NEVER,
  ).pipe(
    map(() => run),
    startWith(run),
  );
