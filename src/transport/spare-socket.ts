import type { Socket } from 'node:net';
import { concat, defer, EMPTY, fromEvent, noop, Observable, Subscription, take, timer } from 'rxjs';
import { type Connect, isReady, originOf } from './connect-socket.js';
import { MAX_IDLE_MS, renewIdle, type RenewTiming } from './renew-idle.js';

/** Longest age in ms of a spare connection that is still connecting. After a second its SYN is probably lost, and a new connection is as fast. */
const MAX_CONNECTING_MS = 1_000;

/** Delay in ms before a standby connection is opened, so that it does not delay the first frames of the stream. */
const STANDBY_DELAY_MS = 100;

/** At most one unused connection, to the origin of the last connection. */
export interface SpareSocket<S extends Socket> {
  /** Opens the spare connection, unless it exists or there is no last origin. It is dropped if it fails, or if the server closes it or sends data. */
  readonly open: () => void;
  /**
   * Opens the spare connection, and opens it again after a wait whenever it is closed. Waits first until `current` is closed, because a
   * reconnect can reuse that connection.
   */
  readonly standBy: (current?: Socket) => void;
  /** Returns a connection to the origin of a URL: the spare connection if it has this origin and is usable, otherwise a new one. */
  readonly take: Connect<S>;
  /** Destroys the spare connection and forgets the origin: no spare is opened until `take` is called again. */
  readonly drop: () => void;
}

interface Spare<S> {
  readonly socket: S;
  readonly sinceMs: number;
}

/**
 * Creates a {@link SpareSocket}.
 *
 * @param onError - receives an exception of the user's functions in `timing`. No spare connection is opened again by `standBy` after it
 * @param now - a monotonic clock, in ms
 */
export const spareSocket = <S extends Socket>(
  connect: Connect<S>,
  timing: RenewTiming,
  onError: (thrown: unknown) => void,
  now = () => performance.now(),
): SpareSocket<S> => {
  let last: URL | undefined;
  let spare: Spare<S> | undefined;
  let opening = Subscription.EMPTY;

  const isUsable = ({ socket, sinceMs }: Spare<S>): boolean =>
    !socket.destroyed && now() - sinceMs < (isReady(socket) ? MAX_IDLE_MS : MAX_CONNECTING_MS);

  // Completes when the connection is closed. Unsubscribing destroys the connection, unless it was taken.
  const spare$ = new Observable<never>((subscriber) => {
    const socket = last && tryToConnect(connect, last);
    if (!socket) return subscriber.complete();
    const opened = { socket, sinceMs: now() };
    spare = opened;
    // No request was sent. If the server sends anything, for example a 408 or a FIN, the connection cannot be used.
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
    standBy: (current) => {
      if (last)
        start(concat(timer(STANDBY_DELAY_MS, timing.scheduler), closed$(current), spare$.pipe(renewIdle(timing))));
    },
    take: (url) => {
      const usable = last && originOf(last) === originOf(url) && spare && isUsable(spare) ? spare.socket : undefined;
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

const closed$ = (socket: Socket | undefined): Observable<unknown> =>
  defer(() => (socket === undefined || socket.destroyed ? EMPTY : fromEvent(socket, 'close').pipe(take(1))));

const tryToConnect = <S extends Socket>(connect: Connect<S>, url: URL): S | undefined => {
  try {
    return connect(url);
  } catch {
    // The handshake tries the same URL and reports the error.
    return undefined;
  }
};
