import { defer, delayWhen, finalize, identity, merge, noop, type Observable, of, retryWhen, tap } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { Frame, IsWanted } from '../protocol/frame.js';
import type { Ticket } from '../protocol/ticket.js';
import type { OnClosing } from '../transport/handshake.js';
import { openConnectionOver } from '../transport/open-connection.js';
import { requestTicketOver } from '../transport/request-ticket.js';
import { reusableSockets } from '../transport/sockets.js';
import { type Emit, type Lifecycle, reconnects } from './lifecycle.js';
import type { TicketSettings } from './options.js';

/**
 * Streams the frames of a feed on the thread that subscribes: the main thread or a worker.
 *
 * @param lifecycle - gets the events of the attempts, and the feed's error before the subscriber does
 * @param onClosing - called for each connection that starts to close
 * @param beforeHandshake - subscribed to once a ticket is issued; its first value starts the handshake
 *   @defaultValue no wait
 * @param isWanted - see {@link openConnectionOver}
 */
export const attempts$ = (
  feed: Feed,
  settings: TicketSettings,
  lifecycle: Lifecycle,
  onClosing: OnClosing = noop,
  beforeHandshake?: Observable<unknown>,
  isWanted?: IsWanted,
): Observable<Frame> =>
  defer(() => {
    const sockets = reusableSockets(settings, lifecycle.hasOpened);
    const emit: Emit = (event) => {
      if (event.type === 'disconnected') sockets.attemptFailed(event.failure);
      lifecycle.emit(event);
    };
    const on = attemptEvents({ ...lifecycle, emit }, settings.deliveryDelayMs);
    return merge(sockets.errors$, of(feed)).pipe(
      tap(on.ticketRequested),
      requestTicketOver(sockets, settings), //                        Feed   -> Ticket  POST /v1/wss/tickets
      beforeHandshake ? delayWhen(() => beforeHandshake) : identity,
      tap(on.ticketIssued),
      openConnectionOver(sockets, settings, on, onClosing, isWanted), // Ticket -> Frame   handshake, then frames
      retryWhen(reconnects(settings.backoff, { ...lifecycle, emit })), //      failure -> when to resubscribe, or stop
      finalize(sockets.release),
    );
  });

const attemptEvents = (
  { emit, firstFrame, now }: Pick<Lifecycle, 'emit' | 'firstFrame' | 'now'>,
  deliveryDelayMs: TicketSettings['deliveryDelayMs'],
) => {
  let connection = 0;
  return {
    ticketRequested: (feed: Feed) => emit({ type: 'ticket-requested', at: now(), feed }),
    ticketIssued: ({ feed, expires_at: expiresAt }: Ticket) =>
      emit({ type: 'ticket-issued', at: now(), feed, expiresAt }),
    // Numbers the connections of one subscription: 1, 2, …
    opened: (feed: Feed): number => {
      connection += 1;
      const at = now();
      const known = deliveryDelayMs !== 'auto' && { completeFrom: at + deliveryDelayMs };
      emit({ type: 'opened', at, feed, connection, ...known });
      return connection;
    },
    firstFrame,
  };
};
