import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { noop, Observable, type Subscriber } from 'rxjs';
import { WebSocket } from 'ws';
import type { Settings } from '../options.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import { retryAfterMs } from '../protocol/retry-after.js';
import { redactorOf, type Ticket } from '../protocol/ticket.js';
import { deadline } from './deadline.js';
import { judgedFailure } from './judged-failure.js';
import { networkFailure } from './network-failure.js';
import type { AttemptSockets } from './reusable-sockets.js';
import { TappedSocket } from './tapped-socket.js';
import { withOwnCheck } from './tls.js';

/**
 * The limits of ws that are not options here. Its own are so low that a healthy connection can meet them: 60 pings that wait
 * while the event loop is blocked, a large frame in many fragments.
 */
const limits = {
  /** How long the closing handshake may take, in ms, before the socket is destroyed. */
  closeTimeout: 1_000,
  /** Pings of one read that are answered; a read of 64 KiB holds 32 768 at the most. */
  maxPendingAutoPongs: 100_000,
};

/** Fragments of one frame, and chunks of one fragment: each costs some 128 bytes, so that all of them cost no more than the largest frame. */
const mostPieces = (maxFrameBytes: number): number => Math.max(32 * 1024, Math.floor(maxFrameBytes / 128));

/** Is called when a connection starts to close, with a promise that resolves when it is closed. */
export type OnClosing = (closed: Promise<void>) => void;

/** An open connection: the WebSocket, and the socket that its bytes are read from. */
export interface OpenSocket {
  readonly webSocket: WebSocket;
  readonly socket: Duplex;
  /** Lets go of a connection whose close frame was answered: `ws` ends the closing handshake by itself, and nobody hears of it. */
  readonly leave: () => void;
}

/**
 * Opens a WebSocket with a ticket (contract, section 4.2).
 *
 * Emits once, when the connection is open, and stays: the connection lives as long as the subscription. Errors with a
 * `TradeFeedError` of stage `handshake`. Unsubscribing closes the connection, within a bounded time, and mutes it.
 */
export const handshake$ = (
  ticket: Ticket,
  sockets: AttemptSockets,
  settings: Settings,
  onClosing: OnClosing,
): Observable<OpenSocket> => {
  const { handshakeTimeoutMs } = settings;
  const leftMs = leftOf(ticket, sockets);
  const late: FailureFacts =
    leftMs <= handshakeTimeoutMs
      ? { stage: 'handshake', code: 'ticket-expired' }
      : { stage: 'handshake', code: 'handshake-unreachable', detail: `no answer in ${handshakeTimeoutMs} ms` };
  return new Observable<OpenSocket>((subscriber) => {
    const fail = (facts: FailureFacts) => subscriber.error(judgedFailure(settings, facts));
    if (leftMs <= 0) fail(late);
    else open(connect(ticket, sockets, settings, fail), ticket, onClosing, subscriber, fail);
  }).pipe(deadline(Math.min(leftMs, handshakeTimeoutMs), () => judgedFailure(settings, late)));
};

// If two fresh tickets in a row expire, a clock is wrong. So after the first one the service decides.
const leftOf = ({ deadlineMs = Infinity }: Ticket, { lastFailure }: AttemptSockets): number =>
  lastFailure()?.code === 'ticket-expired' ? Infinity : deadlineMs - performance.now();

const open = (
  webSocket: WebSocket | undefined,
  ticket: Ticket,
  onClosing: OnClosing,
  subscriber: Subscriber<OpenSocket>,
  fail: (facts: FailureFacts) => void,
): void => {
  if (webSocket === undefined) return;
  let upgraded: IncomingMessage | undefined;
  const teardown = () => release(webSocket, onClosing);
  const leave = () => {
    subscriber.remove(teardown);
    mute(webSocket, onClosing);
  };
  subscriber.add(teardown);
  webSocket
    .on('upgrade', (response) => {
      upgraded = response;
      const agreed = response.headers['sec-websocket-protocol'];
      if (agreed !== ticket.subprotocol) fail({ stage: 'handshake', code: 'subprotocol-mismatch' });
    })
    .on('unexpected-response', (_request, { statusCode: status, headers }: IncomingMessage) => {
      fail({ stage: 'handshake', status, retryAfterMs: retryAfterMs(headers['retry-after'], headers.date) });
    })
    .on('error', (error) => {
      fail(
        upgraded
          ? { stage: 'handshake', status: 101, detail: error.message }
          : networkFailure('handshake', error, redactorOf(ticket)),
      );
    })
    .on('open', () => subscriber.next({ webSocket, socket: (upgraded as IncomingMessage).socket, leave }));
};

const connect = (
  ticket: Ticket,
  { connectStream }: AttemptSockets,
  { tls, agent, maxFrameBytes }: Settings,
  fail: (facts: FailureFacts) => void,
): WebSocket | undefined => {
  try {
    return new WebSocket(ticket.wss_url, [ticket.subprotocol], {
      ...withOwnCheck(tls),
      agent,
      // An agent makes sockets of its own.
      createConnection: () => new TappedSocket(connectStream(new URL(ticket.wss_url))),
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: maxFrameBytes,
      maxFragments: mostPieces(maxFrameBytes),
      maxBufferedChunks: mostPieces(maxFrameBytes),
      ...limits,
      // Set here and not in `headers`: an agent would be handed those, and Node's own debug log prints what it is handed.
      finishRequest: (request) => {
        request.setHeader('authorization', `Bearer ${ticket.ticket.reveal()}`);
        request.end();
      },
    });
  } catch (cause) {
    fail({ stage: 'handshake', code: 'invalid-options', detail: (cause as Error).message, cause });
    return undefined;
  }
};

// A socket that is still open says goodbye; any other one is destroyed. In both cases nobody hears of it again.
const release = (webSocket: WebSocket, onClosing: OnClosing): void => {
  mute(webSocket, onClosing);
  if (webSocket.readyState === WebSocket.OPEN) webSocket.close(1000);
  else webSocket.terminate();
};

const mute = (webSocket: WebSocket, onClosing: OnClosing): void => {
  webSocket.removeAllListeners().on('error', noop);
  if (webSocket.readyState !== WebSocket.CLOSED)
    onClosing(new Promise((resolve) => webSocket.once('close', () => resolve())));
};
