import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { noop, Observable, type Subscriber } from 'rxjs';
import type * as ws from 'ws';
import type { WebSocket } from 'ws';
import type { Settings } from '../options.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import { retryAfterMs } from '../protocol/retry-after.js';
import { redactorOf } from '../protocol/redactor-of.js';
import type { Ticket } from '../protocol/ticket.js';
import { attemptFailure, networkFailure } from './attempt-failure.js';
import { deadline } from './deadline.js';
import { FrameSocket } from './frame-socket.js';
import { withIdentityCheck } from './identity-check.js';
import type { AttemptSockets } from './reusable-sockets.js';

/**
 * Limits of `ws` that are not options of this library. A healthy connection can exceed the defaults of `ws`: 60 pings can arrive
 * while the event loop is blocked, and a large frame can have many fragments.
 */
const limits = {
  /** Deadline of the closing handshake in ms. At the deadline, the socket is destroyed. */
  closeTimeout: 1_000,
  /** How many pongs may wait to be sent; one more ends the connection. A read of 64 KiB contains at most 32 768 pings. */
  maxPendingAutoPongs: 100_000,
};

/**
 * Limits the fragments of a frame and the chunks of a fragment. Each costs about 128 bytes of memory, so the pieces cost at most as much
 * as the largest frame, or 4 MiB if that is more.
 */
const maxPieces = (maxFrameBytes: number): number => Math.max(32 * 1024, Math.floor(maxFrameBytes / 128));

/** Is called when a connection starts to close, with a promise that resolves when it is closed. */
export type OnClosing = (closed: Promise<void>) => void;

/** An open connection: the WebSocket, and the socket from which its bytes are read. */
export interface OpenSocket {
  readonly webSocket: WebSocket;
  readonly socket: Duplex;
  /** Removes all listeners after a close frame was answered. `ws` completes the closing handshake without them. */
  readonly leave: () => void;
}

/**
 * Opens a WebSocket with a ticket (contract, section 4.2).
 *
 * Emits once, when the connection is open, and does not complete: the connection lives as long as the subscription. Errors with a
 * `TradeFeedError` of stage `handshake`. Unsubscribing removes all listeners and closes the connection within a second.
 */
export const handshake$ = (
  client: typeof ws,
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
    const fail = (facts: FailureFacts) => subscriber.error(attemptFailure(settings, facts));
    if (leftMs <= 0) fail(late);
    else open(connect(client, ticket, sockets, settings, fail), ticket, onClosing, subscriber, fail);
  }).pipe(deadline(Math.min(leftMs, handshakeTimeoutMs), () => attemptFailure(settings, late)));
};

// If a fresh ticket expires, a clock may be wrong. So the next attempt ignores the expiry, and the service decides.
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
  client: typeof ws,
  ticket: Ticket,
  { connectStream }: AttemptSockets,
  { tls, agent, maxFrameBytes }: Settings,
  fail: (facts: FailureFacts) => void,
): WebSocket | undefined => {
  try {
    return new client.WebSocket(ticket.wss_url, [ticket.subprotocol], {
      ...withIdentityCheck(tls),
      agent,
      // With an `agent`, `ws` does not call this: the agent creates the sockets.
      createConnection: () => new FrameSocket(connectStream(new URL(ticket.wss_url))),
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: maxFrameBytes,
      maxFragments: maxPieces(maxFrameBytes),
      maxBufferedChunks: maxPieces(maxFrameBytes),
      ...limits,
      // Set here and not in `headers`: these are passed to the agent, and Node's debug log prints the agent's options.
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

// An open connection is closed with a closing handshake. Any other connection is destroyed.
const release = (webSocket: WebSocket, onClosing: OnClosing): void => {
  mute(webSocket, onClosing);
  if (webSocket.readyState === webSocket.OPEN) webSocket.close(1000);
  else webSocket.terminate();
};

const mute = (webSocket: WebSocket, onClosing: OnClosing): void => {
  webSocket.removeAllListeners().on('error', noop);
  if (webSocket.readyState !== webSocket.CLOSED)
    onClosing(new Promise((resolve) => webSocket.once('close', () => resolve())));
};
