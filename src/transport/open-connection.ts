import type { Duplex } from 'node:stream';
import { defer, noop, Observable, type OperatorFunction, switchMap } from 'rxjs';
import type { WebSocket } from 'ws';
import { resolveOptions, type Settings, type TradeFeedOptions } from '../options.js';
import { isCloseReason } from '../protocol/close-code.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { redactorOf } from '../protocol/redactor-of.js';
import type { Ticket } from '../protocol/ticket.js';
import { attemptFailure, safeCause } from './attempt-failure.js';
import { FrameSocket } from './frame-socket.js';
import { handshake$, type OnClosing, type OpenSocket } from './handshake.js';
import { stalled$ } from './liveness.js';
import { createLease } from './lease.js';
import { ReceivedFrame } from '../frames/received-frame.js';
import { type AttemptSockets, freshSockets } from './reusable-sockets.js';
import { loadWebSocketClient } from './network-clients.js';
import type { FrameHandler } from './whole-frames.js';

/** The close code for a close frame without a code (RFC 6455, 7.4.1). */
const NO_STATUS = 1005;

/**
 * Turns each `Ticket` into the frames of a connection opened with it (contract, sections 4.2 and 6).
 *
 * Emits each frame once, in order, unchanged. Frames that arrived before a close are emitted before its failure. A later ticket
 * replaces the connection of an earlier one. Never completes while connected: every end is an error, a `TradeFeedError` of stage
 * `handshake` (`handshake-rejected`, `ticket-rejected`, `capacity-full`, `subprotocol-mismatch`, `handshake-failed`,
 * `handshake-unreachable`, `untrusted-certificate`, `ticket-expired`) or `stream` (`connection-replaced`,
 * `policy-violation`, `access-expired`, `access-revoked`, `client-too-slow`, `server-shutdown`, `connection-lost`,
 * `connection-stalled`, `invalid-frame`, `connection-closed`); `invalid-options` when the option `agent` or `tls` cannot be used.
 * An exception of the option `classify` is the error; a `TradeFeedError` gets the verdict `stop`. Never retries, never sends a message.
 * Unsubscribing closes the connection. A closing handshake that takes longer than 1 s is aborted.
 *
 * @param options - see {@link TradeFeedOptions}; `handshakeTimeoutMs`, `idleTimeoutMs`, `maxFrameBytes`, `tls`, `agent` and `classify` are used
 * @param onOpen - is called when a connection opens, before its first frame; returns the number of the connection.
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
 * Opens connections as {@link openConnection} does, over the sockets of an attempt.
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
    defer(loadWebSocketClient).pipe(
      switchMap((client) => handshake$(client, ticket, sockets, settings, onClosing)),
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
    // The subscriber may have unsubscribed during the event `opened`.
    if (subscriber.closed) return;
    const { feed } = ticket;
    const redact = redactorOf(ticket);
    const openedMs = performance.now();
    let lastReadMs = openedMs;
    let readAt = Date.now();
    let framesReceived = 0;
    const lease = createLease((frame) => subscriber.next(frame));
    const end = (facts: Omit<FailureFacts, 'stage'>, endedMs = performance.now()) =>
      subscriber.error(
        attemptFailure(settings, {
          stage: 'stream',
          uptimeMs: Math.round(endedMs - openedMs),
          framesReceived,
          ...facts,
        }),
      );

    const read = () => {
      lastReadMs = performance.now();
      readAt = Date.now();
    };
    const frame = (bytes: Buffer, start: number, end: number, isBinary: boolean, isAscii: boolean) => {
      framesReceived += 1;
      lease.emit(new ReceivedFrame(feed, bytes, start, end, isBinary, isAscii, readAt, connection, true));
    };
    const closed = (closeCode: number, bytes: Buffer) => {
      const reason = bytes.toString('utf8');
      end({ closeCode, reason: isCloseReason(reason) ? reason : redact(reason) });
    };
    // `ws` reports a close only when the socket is closed. A server that leaves the socket open must not delay the reconnect.
    const closeFrame = (payload: Buffer) => {
      if (subscriber.closed || webSocket.readyState !== webSocket.CLOSING) return;
      leave();
      if (payload.length === 0) closed(NO_STATUS, payload);
      else closed(payload.readUInt16BE(0), payload.subarray(2));
    };

    // A message of `ws` is a view of a read, or of a buffer in which `ws` joined fragments.
    const message = (data: Buffer, isBinary: boolean) => {
      frame(data, 0, data.length, isBinary, false);
      lease.end();
    };

    webSocket
      .removeAllListeners('error')
      .on('message', message)
      .on('error', (error) => {
        const cause = safeCause(error, redact);
        end({ code: 'invalid-frame', detail: cause.message, cause });
      })
      .on('close', closed);

    const { maxFrameBytes, idleTimeoutMs } = settings;
    const handler = {
      read,
      frame,
      readEnd: lease.end,
      close: closeFrame,
      framesReceived: () => framesReceived,
      isClosed: () => subscriber.closed,
      maxFrameBytes,
    };
    if (!(socket instanceof FrameSocket && socket.handleFrames(handler)))
      subscriber.add(watchReads(socket, webSocket, handler));

    const pulse = { lastReadMs: () => lastReadMs, ping: () => webSocket.ping() };
    subscriber.add(
      stalled$(pulse, idleTimeoutMs).subscribe(() => {
        webSocket.terminate();
        end({ code: 'connection-stalled', endedAt: readAt }, lastReadMs);
      }),
    );
  });

// Used when `ws` reads all frames: with a user's agent, or if `handleFrames` returned `false`. `ws` reports a close only when the socket
// is closed, so the socket is destroyed.
const watchReads = (socket: Duplex, webSocket: WebSocket, { read, isClosed }: FrameHandler): (() => void) => {
  const onParsed = () => {
    if (!isClosed() && webSocket.readyState === webSocket.CLOSING) setImmediate(() => webSocket.terminate());
  };
  socket.prependListener('data', read).on('data', onParsed);
  return () => socket.off('data', read).off('data', onParsed);
};
