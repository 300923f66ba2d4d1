import type { Duplex } from 'node:stream';
import { defer, ignoreElements, noop, Observable, type OperatorFunction, type Subscriber, switchMap, tap } from 'rxjs';
import type { WebSocket } from 'ws';
import { resolveOptions, type Settings, type TradeFeedOptions } from '../feed/options.js';
import { MemoryUse, moveToBlocks, Payload, PayloadKind, ReceivedFrame } from '../frames/received-frame.js';
import { CloseReason } from '../protocol/contract.js';
import { attemptFailure } from '../protocol/failures/classify.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame, IsWanted } from '../protocol/frame.js';
import type { Ticket } from '../protocol/ticket.js';
import { safeCause } from './attempt-failure.js';
import { stalled$ } from './deadline.js';
import { FrameSocket } from './frame-socket.js';
import { handshake$, type OnClosing, type OpenSocket } from './handshake.js';
import { loadWebSocketClient } from './network-clients.js';
import { redactorOf } from './parse-ticket.js';
import type { FrameHandler } from './read-frames.js';
import { type AttemptSockets, freshSockets } from './sockets.js';

/** Reported for a close frame without a code (RFC 6455, 7.4.1). */
const NO_STATUS = 1005;

/**
 * Opens a connection with each `Ticket`, and emits its frames (contract, sections 4.2 and 6).
 *
 * Emits each frame once, in order, unchanged. Emits the frames that arrived before a close before its failure. A new
 * ticket replaces the connection of the one before. Never completes while connected: it always ends with an error, a
 * `TradeFeedError` of stage `handshake` (`handshake-rejected`, `ticket-rejected`, `capacity-full`,
 * `subprotocol-mismatch`, `handshake-failed`, `handshake-unreachable`, `untrusted-certificate`, `ticket-expired`) or
 * `stream` (`connection-replaced`, `policy-violation`, `access-expired`, `access-revoked`, `client-too-slow`,
 * `server-shutdown`, `connection-lost`, `connection-stalled`, `invalid-frame`, `connection-closed`); `invalid-options`
 * if the option `agent` or `tls` can't be used. If the option `classify` throws, it errors with that; a
 * `TradeFeedError` gets the verdict `stop`. Never retries, never sends a message. Unsubscribing closes the connection,
 * and aborts a closing handshake that takes longer than 1 s.
 *
 * @param options - see {@link TradeFeedOptions}; `handshakeTimeoutMs`, `idleTimeoutMs`, `maxFrameBytes`, `tls`,
 *   `agent` and `classify` are used
 * @param onOpen - called when a connection opens, before its first frame; returns the number of the connection.
 * @defaultValue every connection is number 1
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { openConnection, requestTicket } from 'rx-trade-feed';
 *
 * of('market' as const)
 *   .pipe(requestTicket(), openConnection())
 *   .subscribe({
 *     next: (frame) => console.log(frame.text()),
 *     error: (failure) => console.error(failure),
 *   });
 * ```
 */
export const openConnection = (
  options?: TradeFeedOptions,
  onOpen: (feed: Feed) => number = () => 1,
): OperatorFunction<Ticket, Frame> => {
  const settings = resolveOptions(options);
  return openConnectionOver(freshSockets(settings), settings, { opened: onOpen, firstFrame: noop });
};

interface ConnectionHandlers {
  /** Called when a connection opens, before its first frame. Returns the number of the connection. */
  readonly opened: (feed: Feed) => number;
  /** Called for the first frame of a connection, wanted or not. @param at - when it arrived, in epoch ms */
  readonly firstFrame: (at: number) => void;
}

/** `isWanted` decides whether to emit a frame before the frame is even created. */
export const openConnectionOver = (
  sockets: AttemptSockets,
  settings: Settings,
  on: ConnectionHandlers,
  onClosing: OnClosing = noop,
  isWanted?: IsWanted,
): OperatorFunction<Ticket, Frame> =>
  switchMap((ticket) => {
    const open$ = defer(() => loadWebSocketClient(settings, sockets.hasOpened?.())).pipe(
      switchMap((client) => handshake$(client, ticket, sockets, settings, onClosing)),
      tap(() => sockets.standBy?.()),
    );
    // A `switchMap` from the open connection to its frames would put one more operator in the path of each frame.
    return new Observable<Frame>((subscriber) => {
      const start = (open: OpenSocket): void =>
        startStream(new Stream(open, ticket, settings, on, isWanted, subscriber));
      open$.pipe(tap(start), ignoreElements()).subscribe(subscriber);
    });
  });

const startStream = (stream: Stream): void => {
  const { open, ticket, settings, subscriber } = stream;
  // The subscriber may have unsubscribed when it received `opened`.
  if (subscriber.closed) return;
  const { webSocket, socket } = open;
  webSocket
    .removeAllListeners('error')
    .on('message', (data: Buffer, isBinary) => stream.message(data, isBinary))
    .on('error', (error) => {
      const cause = safeCause(error, redactorOf(ticket));
      stream.end({ code: 'invalid-frame', detail: cause.message, cause });
    })
    .on('close', (code, reason) => stream.closed(code, reason));
  if (!(socket instanceof FrameSocket && socket.handleFrames(stream)))
    subscriber.add(watchReads(socket, webSocket, stream));
  const pulse = { lastReadMs: () => stream.lastReadMs, ping: () => webSocket.ping() };
  subscriber.add(stalled$(pulse, settings.idleTimeoutMs).subscribe(() => stream.stalled()));
};

// For connections that only `ws` reads: with a user's agent, or if `handleFrames` returned `false`. `ws` doesn't report
// a close until the socket has closed, so this destroys the socket.
const watchReads = (socket: Duplex, webSocket: WebSocket, stream: Stream): (() => void) => {
  const read = () => stream.read();
  const onParsed = () => {
    if (!stream.isClosed && webSocket.readyState === webSocket.CLOSING) setImmediate(() => webSocket.terminate());
  };
  socket.prependListener('data', read).on('data', onParsed);
  return () => socket.off('data', read).off('data', onParsed);
};

/**
 * Emits the frames of an open connection, and the failure that ends it. Its fields are `private`, because `#` makes a
 * frame of 200 bytes take a fifth longer on Node 20.
 */
class Stream implements FrameHandler {
  framesReceived = 0;
  lastReadMs = performance.now();
  readonly maxFrameBytes: number;
  private readonly openedMs = this.lastReadMs;
  private readAt = Date.now();
  /** Payloads of the current read that no subscriber has read yet. */
  private unread: Payload[] = [];
  readonly open: OpenSocket;
  readonly ticket: Ticket;
  readonly settings: Settings;
  readonly subscriber: Subscriber<Frame>;
  private readonly connection: number;
  private readonly firstFrame: ConnectionHandlers['firstFrame'];
  private readonly isWanted: IsWanted | undefined;
  /** Whether this read has called `isWanted` and emitted no frame since. */
  private isUndisturbed = false;

  constructor(
    open: OpenSocket,
    ticket: Ticket,
    settings: Settings,
    on: ConnectionHandlers,
    isWanted: IsWanted | undefined,
    subscriber: Subscriber<Frame>,
  ) {
    this.maxFrameBytes = settings.maxFrameBytes;
    this.open = open;
    this.ticket = ticket;
    this.settings = settings;
    this.firstFrame = on.firstFrame;
    this.connection = on.opened(ticket.feed);
    this.isWanted = isWanted;
    this.subscriber = subscriber;
  }

  get isClosed(): boolean {
    return this.subscriber.closed;
  }

  read(): void {
    this.lastReadMs = performance.now();
    this.readAt = Date.now();
    this.isUndisturbed = false;
  }

  /** Emits a frame, whose payload can be read in place while `next` runs. */
  frame(bytes: Buffer, start: number, end: number, kind: PayloadKind): void {
    this.framesReceived += 1;
    if (this.framesReceived === 1) this.firstFrame(this.readAt);
    if (this.isWanted !== undefined && !this.wants(bytes.subarray(start, end), kind === PayloadKind.Binary)) return;
    const payload = new Payload(bytes, start, end, kind, MemoryUse.Reused);
    this.subscriber.next(new ReceivedFrame(this.ticket.feed, payload, this.readAt, this.connection));
    this.isUndisturbed = false;
    if (payload.isLeased) this.unread.push(payload);
  }

  private wants(payload: Buffer, isBinary: boolean): boolean {
    const { isUndisturbed } = this;
    this.isUndisturbed = true;
    try {
      return (this.isWanted as IsWanted)(payload, isBinary, isUndisturbed);
    } catch (error) {
      this.subscriber.error(error);
      return false;
    }
  }

  readEnd(): void {
    if (this.unread.length === 0) return;
    // Another subscriber may have read a frame while a later one was emitted.
    moveToBlocks(this.unread.filter(({ isLeased }) => isLeased));
    this.unread = [];
  }

  /** Emits a message from `ws`: a view of the read buffer, or of a buffer where `ws` joined fragments. */
  message(data: Buffer, isBinary: boolean): void {
    this.isUndisturbed = false;
    this.frame(data, 0, data.length, isBinary ? PayloadKind.Binary : PayloadKind.Utf8);
    this.readEnd();
  }

  // `ws` doesn't report a close until the socket has closed. If the server leaves it open, the feed would reconnect too
  // late.
  close(payload: Buffer): void {
    const { webSocket, leave } = this.open;
    if (this.isClosed || webSocket.readyState !== webSocket.CLOSING) return;
    leave();
    if (payload.length === 0) this.closed(NO_STATUS, payload);
    else this.closed(payload.readUInt16BE(0), payload.subarray(2));
  }

  closed(closeCode: number, bytes: Buffer): void {
    const reason = bytes.toString('utf8');
    const isKnown = Object.values<string>(CloseReason).includes(reason);
    this.end({ closeCode, reason: isKnown ? reason : redactorOf(this.ticket)(reason) });
  }

  stalled(): void {
    this.open.webSocket.terminate();
    this.end({ code: 'connection-stalled', endedAt: this.readAt }, this.lastReadMs);
  }

  end(facts: Omit<FailureFacts, 'stage'>, endedMs = performance.now()): void {
    const uptimeMs = Math.round(endedMs - this.openedMs);
    const observed = { stage: 'stream', uptimeMs, framesReceived: this.framesReceived, ...facts } as const;
    this.subscriber.error(attemptFailure(this.settings, observed));
  }
}
