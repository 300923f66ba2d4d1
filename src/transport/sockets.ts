import type { Socket } from 'node:net';
import {
  concat,
  defer,
  EMPTY,
  fromEvent,
  type MonoTypeOperatorFunction,
  noop,
  Observable,
  repeat,
  Subject,
  Subscription,
  take,
  takeUntil,
  timer,
} from 'rxjs';
import type { Client } from 'undici';
import type { Settings } from '../feed/options.js';
import { thrownByOption, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { tryCall } from '../protocol/type-guards.js';
import { type Addresses, createAddresses } from './addresses.js';
import { type Connect, isReady, originOf, plainConnect, resumingConnect, whenReady } from './connect.js';
import { type BufferedSocket, readIntoBuffer } from './frame-socket.js';
import { withoutInterimResponses } from './interim-responses.js';
import type { HttpClient } from './network-clients.js';

/**
 * The connections of an attempt. They never store a ticket. If the optional functions are missing, each attempt opens
 * new connections and stores none.
 */
export interface AttemptSockets {
  /** Connects for a handshake. */
  readonly connectStream: Connect<BufferedSocket>;
  /** Connects for a ticket request. */
  readonly connectTicket: Connect;
  /** Returns `''`, or the addresses of a URL's origin that were tried (" from …"), if there are several. */
  readonly triedAt: (url: URL) => string;
  /** Removes and returns the client of the last ticket request, if it's stored and still works. */
  readonly takeClient?: () => TicketClient | undefined;
  /** Stores a client whose last request got a complete answer. */
  readonly storeClient?: (client: TicketClient) => void;
  /** Opens a spare connection for the handshake while the ticket is requested. */
  readonly openSpare?: () => void;
  /** Keeps a spare connection to both endpoints open while the stream is open, if the option `standby` is on. */
  readonly standBy?: () => void;
  /** Returns the failure that ended the previous attempt. */
  readonly lastFailure?: () => TradeFeedError | undefined;
  /** Returns whether a connection of this subscription has opened. */
  readonly hasOpened?: () => boolean;
}

/** Returns the sockets for an operator that's used without the feed. */
export const freshSockets = ({ tls }: Pick<Settings, 'tls'>): AttemptSockets => {
  const addresses = createAddresses();
  const connect = plainConnect(tls, addresses);
  return { connectStream: readIntoBuffer(connect), connectTicket: connect, triedAt: triedIn(addresses) };
};

const triedIn =
  ({ triedAt }: Addresses) =>
  (url: URL): string =>
    triedAt(originOf(url));

interface ReusableSockets extends Required<AttemptSockets> {
  /** Never emits. Errors, and so does the feed, if the option `backoff` throws while a spare connection is renewed. */
  readonly errors$: Observable<never>;
  /** Stores the failure that ended an attempt, and destroys stored connections that it makes suspect. */
  readonly attemptFailed: (failure: TradeFeedError) => void;
  /** Destroys all stored connections, and any client that's stored later. */
  readonly release: () => void;
}

/**
 * Saves round trips when reconnecting, by reusing the last ticket request's connection, TLS sessions and a spare
 * connection.
 */
export const reusableSockets = (
  { tls, standby, backoff }: Settings,
  hasOpened: AttemptSockets['hasOpened'] = () => false,
): ReusableSockets => {
  const addresses = createAddresses();
  const connect = resumingConnect(tls, addresses);
  const errors$ = new Subject<never>();
  const onError = (thrown: unknown) => errors$.error(thrownByOption('backoff', thrown));
  const spare = spareSocket(readIntoBuffer(connect), backoff, onError);
  const spareForTicket = spareSocket(connect, backoff, onError);
  let client: TicketClient | undefined;
  let lastFailure: TradeFeedError | undefined;
  let isReleased = false;

  const dropSpares = () => {
    spare.drop();
    spareForTicket.drop();
  };
  return {
    errors$,
    connectStream: spare.take,
    connectTicket: spareForTicket.take,
    triedAt: triedIn(addresses),
    takeClient: () => {
      const stored = client;
      client = undefined;
      return stored?.dispatcher.destroyed ? undefined : stored;
    },
    storeClient: (answered) => {
      if (isReleased) answered.destroy();
      else client = answered;
    },
    openSpare: spare.open,
    standBy: () => {
      if (!standby) return;
      spare.standBy();
      spareForTicket.standBy(client?.socket());
    },
    lastFailure: () => lastFailure,
    hasOpened,
    attemptFailed: (failure) => {
      lastFailure = failure;
      const wasSilent = failure.code === 'connection-stalled';
      // If no connection opened, the service may be in trouble, so the next attempt opens no spare connection.
      if (failure.stage !== 'stream' || wasSilent) dropSpares();
      // The stored connection uses the same route, so a request over it could hang until its deadline.
      if (wasSilent) client?.destroy();
    },
    release: () => {
      isReleased = true;
      dropSpares();
      client?.destroy();
    },
  };
};

/**
 * How long a spare connection may take to connect, in ms. After that its SYN is probably lost, and a new one is as
 * fast.
 */
const MAX_CONNECTING_MS = 1_000;

/**
 * How long an idle connection stays reusable, in ms. Many servers, load balancers and NATs drop idle connections after
 * 60 s, some silently.
 */
export const MAX_IDLE_MS = 50_000;

/** Delay in ms before a standby connection is opened, so that it doesn't slow down the first frames of the stream. */
const STANDBY_DELAY_MS = 100;

/**
 * Manages at most one unused connection, to the origin of the last connection.
 *
 * - `open` opens it, unless it exists or no origin is known. It's dropped if it fails, or if the server closes it or
 *   sends data.
 * - `standBy` opens it, and reopens it after a delay whenever it closes. First waits until `current` is closed, because
 *   the next attempt may reuse that connection.
 * - `take` returns it if it has the URL's origin and is usable, otherwise a new one.
 * - `drop` destroys it and forgets the origin, so none is opened until the next `take`.
 *
 * @param onError - gets what the user's functions in `timing` throw, which ends `standBy`
 * @param now - a monotonic clock, in ms
 */
export const spareSocket = <S extends Socket>(
  connect: Connect<S>,
  timing: RenewTiming,
  onError: (thrown: unknown) => void,
  now = () => performance.now(),
) => {
  let last: URL | undefined;
  let spare: { readonly socket: S; readonly sinceMs: number } | undefined;
  let opening = Subscription.EMPTY;

  const usableFor = (url: URL): S | undefined => {
    if (!last || !spare || originOf(last) !== originOf(url)) return undefined;
    return isUsable(spare.socket, now() - spare.sinceMs) ? spare.socket : undefined;
  };

  // Completes when the connection closes. Unsubscribing destroys it, unless it was taken.
  const spare$ = new Observable<never>((subscriber) => {
    const url = last;
    // If this throws, the handshake tries the same URL and reports the error.
    const socket = url && tryCall(() => connect(url));
    if (!socket) return subscriber.complete();
    const opened = { socket, sinceMs: now() };
    spare = opened;
    // No request was sent, so if the server sends anything, such as a 408 or a FIN, the connection is unusable.
    const gone = () => subscriber.complete();
    socket.on('error', noop).on('readable', gone).on('close', gone);
    return () => {
      socket.off('readable', gone).off('close', gone);
      if (spare !== opened) return;
      spare = undefined;
      socket.destroy();
    };
  });

  const start = (opening$: Observable<unknown>) => {
    opening.unsubscribe();
    opening = opening$.subscribe({ error: onError });
  };
  return {
    open: () => {
      if (spare === undefined) start(spare$);
    },
    standBy: (current?: Socket) => {
      if (last)
        start(concat(timer(STANDBY_DELAY_MS, timing.scheduler), closed$(current), spare$.pipe(renewIdle(timing))));
    },
    take: (url: URL): S => {
      const usable = usableFor(url);
      if (usable) spare = undefined;
      opening.unsubscribe();
      last = url;
      return usable ?? connect(url);
    },
    drop: () => {
      last = undefined;
      opening.unsubscribe();
    },
  };
};

const isUsable = (socket: Socket, ageMs: number): boolean =>
  !socket.destroyed && ageMs < (isReady(socket) ? MAX_IDLE_MS : MAX_CONNECTING_MS);

const closed$ = (socket: Socket | undefined): Observable<unknown> =>
  defer(() => (socket === undefined || socket.destroyed ? EMPTY : fromEvent(socket, 'close').pipe(take(1))));

/** If an idle connection lives this long, in ms, the server accepts idle connections. */
const ACCEPTED_MS = 10_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

type RenewTiming = Pick<Settings['backoff'], 'random' | 'scheduler'>;

/**
 * Reopens an idle connection when it closes, and when it's too old to be reused. The delays double until a connection
 * lives for 10 s.
 */
export const renewIdle =
  <T>({ random, scheduler }: RenewTiming): MonoTypeOperatorFunction<T> =>
  (connection$) =>
    defer(() => {
      let waitMs = 0;
      let openedAt = 0;
      return defer(() => {
        openedAt = scheduler.now();
        return connection$.pipe(takeUntil(timer(MAX_IDLE_MS, scheduler)));
      }).pipe(
        repeat({
          delay: () => {
            const wasAccepted = scheduler.now() - openedAt >= ACCEPTED_MS;
            waitMs = wasAccepted ? FIRST_WAIT_MS : Math.min(LONGEST_WAIT_MS, Math.max(FIRST_WAIT_MS, 2 * waitMs));
            // Never waits 0 ms, even if `random` returns NaN.
            return timer((waitMs * (1 + random())) / 2 || waitMs, scheduler);
          },
        }),
      );
    });

/** An undici Client with one connection, and access to its socket. */
export interface TicketClient {
  readonly dispatcher: Client;
  /** Returns the newest socket. */
  readonly socket: () => Socket | undefined;
  /** Destroys the connection, even while it connects. */
  readonly destroy: () => void;
}

export const createTicketClient = (http: HttpClient, url: URL, connect: Connect): TicketClient => {
  let socket: Socket | undefined;
  const dispatcher = new http.Client(url.origin, {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: MAX_IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
    connect: (_options, callback) => {
      const opened = withoutInterimResponses(connect(url));
      socket = opened;
      // An error may follow `connect` before undici listens for errors.
      opened.on('error', (error: Error) => void dispatcher.destroy(error).catch(noop));
      whenReady(opened, () => callback(null, opened));
    },
  });
  return {
    dispatcher,
    socket: () => socket,
    // While undici connects, `dispatcher.destroy()` doesn't end the connection.
    destroy: () => {
      dispatcher.destroy().catch(noop);
      socket?.destroy();
    },
  };
};
