import type { Socket } from 'node:net';
import { concat, defer, EMPTY, fromEvent, noop, Observable, Subscription, take, timer } from 'rxjs';
import { type Connect, isReady, originOf } from './connect-socket.js';
import { keptReady, MAX_IDLE_MS, type Patience } from './kept-ready.js';

/** How long a spare may have been in the making to be waited for, in ms: after a second its SYN is lost, and a new one as good. */
const MAX_CONNECTING_MS = 1_000;

/** How long an open connection is left to its first frames, in ms, before another is made beside it. */
const STAND_BY_AFTER_MS = 100;

/** Room for one connection that nobody uses yet, to the origin that was last connected to. At most one is held. */
export interface SpareSocket {
  /** Makes one, unless there is one, or nothing was connected to yet. One that fails, or that the server closes, is dropped. */
  readonly open: () => void;
  /** Makes one and, whenever it is gone, another, with patience; first waits for the end of `instead`, which serves as well. */
  readonly standBy: (instead?: Socket) => void;
  /** Gives a connection to the origin of an address: the spare one if it leads there and is good, else a new one. */
  readonly take: Connect;
  /** Destroys the one that is held, and makes no more until something was connected to again. */
  readonly drop: () => void;
}

interface Held {
  readonly socket: Socket;
  readonly sinceMs: number;
}

/**
 * Makes the room for a spare connection.
 *
 * @param connect - makes a connection
 * @param now - a monotonic clock, in ms
 */
export const spareSocket = (connect: Connect, patience: Patience, now = () => performance.now()): SpareSocket => {
  let last: URL | undefined;
  let held: Held | undefined;
  let making = Subscription.EMPTY;

  const isGood = ({ socket, sinceMs }: Held): boolean =>
    !socket.destroyed && now() - sinceMs < (isReady(socket) ? MAX_IDLE_MS : MAX_CONNECTING_MS);

  // Completes when the connection is gone; what nobody took is destroyed with the subscription.
  const held$ = new Observable<never>((subscriber) => {
    const socket = last && orNothing(connect, last);
    if (!socket) return subscriber.complete();
    const mine = { socket, sinceMs: now() };
    held = mine;
    // Nobody asked it anything: what it says, an end or a timeout in words, makes it useless.
    const gone = () => subscriber.complete();
    socket.on('error', noop).on('readable', gone).on('close', gone);
    return () => {
      socket.off('readable', gone).off('close', gone);
      if (held !== mine) return;
      held = undefined;
      socket.destroy();
    };
  });

  const make = (making$: Observable<unknown>) => {
    making.unsubscribe();
    making = making$.subscribe();
  };
  return {
    open: () => {
      if (held === undefined) make(held$);
    },
    standBy: (instead) => {
      if (last)
        make(concat(timer(STAND_BY_AFTER_MS, patience.scheduler), closed$(instead), held$.pipe(keptReady(patience))));
    },
    take: (url) => {
      const spare = last && originOf(last) === originOf(url) && held && isGood(held) ? held.socket : undefined;
      if (spare) held = undefined;
      making.unsubscribe();
      last = url;
      return spare ?? connect(url);
    },
    drop: () => {
      last = undefined;
      making.unsubscribe();
    },
  };
};

const closed$ = (socket: Socket | undefined): Observable<unknown> =>
  defer(() => (socket === undefined || socket.destroyed ? EMPTY : fromEvent(socket, 'close').pipe(take(1))));

const orNothing = (connect: Connect, url: URL): Socket | undefined => {
  try {
    return connect(url);
  } catch {
    // What cannot be connected to at all is told by the handshake, which tries it itself.
    return undefined;
  }
};
