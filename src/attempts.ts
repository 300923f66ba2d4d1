import { defer, delayWhen, finalize, identity, merge, noop, type Observable, of, pipe, retryWhen, tap } from 'rxjs';
import type { TicketSettings } from './options.js';
import type { Feed } from './protocol/feed.js';
import type { Frame } from './protocol/frame.js';
import type { Ticket } from './protocol/ticket.js';
import { backoff } from './reconnect/backoff.js';
import { type Emit, reconnecting } from './reconnect/lifecycle.js';
import type { Reconnect } from './reconnect/policy.js';
import type { OnClosing } from './transport/handshake.js';
import { openConnectionOver } from './transport/open-connection.js';
import { requestTicketOver } from './transport/request-ticket.js';
import { type ReusableSockets, reusableSockets } from './transport/reusable-sockets.js';

/**
 * Streams the frames of a feed. Receives them on the thread that subscribes: the main thread or a worker.
 *
 * @param emit - receives each lifecycle event of an attempt
 * @param onClosing - is called for each connection that starts to close
 * @param onStop - receives the error of the feed, before the subscriber
 * @param beforeHandshake - is subscribed to when a ticket was issued; its first value starts the handshake @defaultValue no wait
 */
export const attempts$ = (
  feed: Feed,
  settings: TicketSettings,
  emit: Emit,
  onClosing: OnClosing = noop,
  onStop: (error: unknown) => void = noop,
  beforeHandshake?: Observable<unknown>,
): Observable<Frame> =>
  defer(() => {
    const sockets = reusableSockets(settings);
    const on = lifecycle(emit, sockets);
    return merge(sockets.errors$, of(feed)).pipe(
      tap(on.ticketRequested),
      requestTicketOver(sockets, settings), //                        Feed    -> Ticket   POST /v1/wss/tickets
      tap(on.ticketIssued),
      beforeHandshake ? delayWhen(() => beforeHandshake) : identity,
      openConnectionOver(sockets, settings, on.opened, onClosing), // Ticket  -> Frame    handshake, then frames
      retryWhen(pipe(backoff(settings.backoff, on.attemptFailed), tap({ error: onStop }))), // failure -> when to resubscribe, or stop
      finalize(sockets.release),
    );
  });

const lifecycle = (emit: Emit, sockets: ReusableSockets) => {
  const emitReconnect = reconnecting(emit);
  let connection = 0;
  return {
    ticketRequested: (feed: Feed) => emit({ type: 'ticket-requested', at: Date.now(), feed }),
    ticketIssued: ({ feed, expires_at: expiresAt }: Ticket) =>
      emit({ type: 'ticket-issued', at: Date.now(), feed, expiresAt }),
    // Numbers the connections of one subscription: 1, 2, …
    opened: (feed: Feed): number => {
      connection += 1;
      emit({ type: 'opened', at: Date.now(), feed, connection });
      return connection;
    },
    attemptFailed: (reconnect: Reconnect) => {
      sockets.attemptFailed(reconnect.failure);
      emitReconnect(reconnect);
    },
  };
};
