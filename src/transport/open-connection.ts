import type { Duplex } from 'node:stream';
import { noop, Observable, type OperatorFunction, switchMap } from 'rxjs';
import { WebSocket } from 'ws';
import { resolveOptions, type Settings, type TradeFeedOptions } from '../options.js';
import { isCloseReason } from '../protocol/close-code.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import { Frame } from '../protocol/frame.js';
import { redactorOf, type Ticket } from '../protocol/ticket.js';
import { judgedFailure } from './judged-failure.js';
import { handshake$, type OnClosing, type OpenSocket } from './handshake.js';
import { stalled$ } from './liveness.js';
import { markShared } from './mark-shared.js';
import { plainCause } from './network-failure.js';
import { type AttemptSockets, freshSockets } from './reusable-sockets.js';
import type { Tap } from './tap.js';
import { TappedSocket } from './tapped-socket.js';

/** What a close frame without a code says (RFC 6455, 7.4.1). */
const NO_STATUS = 1005;

/**
 * Turns each `Ticket` into the frames of a connection opened with it (contract, sections 4.2 and 6).
 *
 * Emits frames once, in order, unchanged, all that came before a close before its failure. A later ticket replaces the
 * connection of an earlier one. Never completes while connected: every end is an error, a `TradeFeedError` of stage
 * `handshake` (`handshake-rejected`, `ticket-rejected`, `capacity-full`, `subprotocol-mismatch`, `handshake-failed`,
 * `handshake-unreachable`, `untrusted-certificate`, `ticket-expired`) or `stream` (`connection-replaced`,
 * `policy-violation`, `access-expired`, `access-revoked`, `client-too-slow`, `server-shutdown`, `connection-lost`,
 * `connection-stalled`, `invalid-frame`, `connection-closed`); `invalid-options` when the `agent` or `tls` given cannot be used.
 * What the option `classify` throws is the error as it is. Never retries, never sends a message.
 * Unsubscribing closes the connection; a closing handshake that takes longer than 1 s is cut.
 *
 * @param options - see {@link TradeFeedOptions}; `handshakeTimeoutMs`, `idleTimeoutMs`, `maxFrameBytes`, `tls`, `agent` and `classify` count here
 * @param onOpen - called when a connection opens, before its first frame; gives the number that its frames carry.
 * @defaultValue every connection is number 1
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { openConnection, requestTicket } from 'rx-trade-feed';
 *
 * of('market' as const)
 *   .pipe(requestTicket(), openConnection())
 *   .subscribe({ next: (frame) => console.log(frame.text()), error: (failure) => console.error(failure) });
 * ```
 */
export const openConnection = (
  options?: TradeFeedOptions,
  onOpen: (feed: Feed) => number = () => 1,
): OperatorFunction<Ticket, Frame> => {
  const settings = resolveOptions(options);
  return openConnectionOver(freshSockets(settings), settings, onOpen);
};

/**
 * Opens connections as {@link openConnection} does, over the sockets that an attempt reuses.
 *
 * @param onClosing - is called for each connection that starts to close
 */
export const openConnectionOver = (
  sockets: AttemptSockets,
  settings: Settings,
  onOpen: (feed: Feed) => number,
  onClosing: OnClosing = noop,
): OperatorFunction<Ticket, Frame> =>
  switchMap((ticket) =>
    handshake$(ticket, sockets, settings, onClosing).pipe(
      switchMap((socket) => {
        sockets.standBy();
        return frames$(socket, ticket, settings, onOpen(ticket.feed));
      }),
    ),
  );

const frames$ = (
  { webSocket, socket, leave }: OpenSocket,
  ticket: Ticket,
  settings: Settings,
  connection: number,
): Observable<Frame> =>
  new Observable((subscriber) => {
    // Whoever was told of the opening may have unsubscribed there and then.
    if (subscriber.closed) return;
    const { feed } = ticket;
    const redact = redactorOf(ticket);
    const openedMs = performance.now();
    let heardAtMs = openedMs;
    let readAt = Date.now();
    let framesReceived = 0;
    // Of the messages of this read.
    let marked: ArrayBufferLike | undefined;
    const end = (facts: Omit<FailureFacts, 'stage'>, endedMs = performance.now()) =>
      subscriber.error(
        judgedFailure(settings, {
          stage: 'stream',
          uptimeMs: Math.round(endedMs - openedMs),
          framesReceived,
          ...facts,
        }),
      );

    const read = () => {
      heardAtMs = performance.now();
      readAt = Date.now();
      marked = undefined;
    };
    const frame = (data: Buffer, isBinary: boolean, isAscii?: boolean) => {
      framesReceived += 1;
      subscriber.next(new Frame(feed, data, isBinary, readAt, connection, isAscii));
    };
    const closed = (closeCode: number, bytes: Buffer) => {
      const reason = bytes.toString('utf8');
      end({ closeCode, reason: isCloseReason(reason) ? reason : redact(reason) });
    };
    // ws tells of a close only when the socket is gone; a server that leaves it open must not delay the reconnect.
    const answered = (payload: Buffer) => {
      if (subscriber.closed || webSocket.readyState !== WebSocket.CLOSING) return;
      leave();
      if (payload.length === 0) closed(NO_STATUS, payload);
      else closed(payload.readUInt16BE(0), payload.subarray(2));
    };

    // The messages of ws are views of what was read, many of one memory, or of memory that ws made to join them.
    const message = (data: Buffer, isBinary: boolean) => {
      if (data.buffer !== marked) markShared(data.buffer);
      marked = data.buffer;
      frame(data, isBinary);
    };

    webSocket
      .removeAllListeners('error')
      .on('message', message)
      .on('error', (error) => {
        const cause = plainCause(error, redact);
        end({ code: 'invalid-frame', detail: cause.message, cause });
      })
      .on('close', closed);

    const told = () => framesReceived;
    const isClosed = () => subscriber.closed;
    const { maxFrameBytes, idleTimeoutMs } = settings;
    const tap = { read, frame, close: answered, told, isClosed, maxFrameBytes };
    if (!(socket instanceof TappedSocket && socket.tap(tap))) subscriber.add(followed(socket, webSocket, tap));

    const pulse = { heardAtMs: () => heardAtMs, ping: () => webSocket.ping() };
    subscriber.add(
      stalled$(pulse, idleTimeoutMs).subscribe(() => {
        webSocket.terminate();
        end({ code: 'connection-stalled', endedAt: readAt }, heardAtMs);
      }),
    );
  });

// The socket of a user's agent is read by ws alone. It tells of a close when the socket is gone: so it has to go.
const followed = (socket: Duplex, webSocket: WebSocket, { read, isClosed }: Tap): (() => void) => {
  const onParsed = () => {
    if (!isClosed() && webSocket.readyState === WebSocket.CLOSING) setImmediate(() => webSocket.terminate());
  };
  socket.prependListener('data', read).on('data', onParsed);
  return () => socket.off('data', read).off('data', onParsed);
};
