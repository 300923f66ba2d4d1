import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { noop, Observable } from 'rxjs';
import type { WebSocket } from 'ws';
import type { Settings } from '../feed/options.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import type { Ticket } from '../protocol/ticket.js';
import { wasCutShort } from './addresses.js';
import { networkFailure, reachFailure } from './attempt-failure.js';
import { withIdentityCheck } from './connect.js';
import { deadline } from './deadline.js';
import { FrameSocket } from './frame-socket.js';
import type { WebSocketClient } from './network-clients.js';
import { redactorOf } from './parse-ticket.js';
import { retryAfterMs } from './retry-after.js';
import type { AttemptSockets } from './sockets.js';

/** Called when a connection starts to close, with a promise that resolves once it has closed. */
export type OnClosing = (closed: Promise<void>) => void;

export interface OpenSocket {
  readonly webSocket: WebSocket;
  readonly socket: Duplex;
  /** Removes all listeners once a close frame was answered. `ws` completes the closing handshake without them. */
  readonly leave: () => void;
}

/** Emits once the connection is open, and doesn't complete. Unsubscribing closes the connection within a second. */
export const handshake$ = (
  client: WebSocketClient,
  ticket: Ticket,
  sockets: AttemptSockets,
  settings: Settings,
  onClosing: OnClosing,
): Observable<OpenSocket> => {
  const { handshakeTimeoutMs } = settings;
  const { wss_url, deadlineMs = Infinity, subprotocol } = ticket;
  const failure = (facts: Omit<FailureFacts, 'stage'>) =>
    reachFailure(settings, wss_url, { stage: 'handshake', hasOpened: sockets.hasOpened?.(), ...facts });
  // If a fresh ticket expires, a clock may be wrong, so the next attempt ignores the expiry: the service decides.
  const isIgnored = sockets.lastFailure?.()?.code === 'ticket-expired';
  const leftMs = isIgnored ? Infinity : deadlineMs - performance.now();
  const late = () =>
    leftMs <= handshakeTimeoutMs
      ? failure({ code: 'ticket-expired' })
      : failure({
          code: 'handshake-unreachable',
          detail: `no answer in ${handshakeTimeoutMs} ms${sockets.triedAt(new URL(wss_url))}`,
        });

  return new Observable<OpenSocket>((subscriber) => {
    if (leftMs <= 0) return subscriber.error(late());
    const fail = (facts: Omit<FailureFacts, 'stage'>) => subscriber.error(failure(facts));
    const failed = (error: Error, upgraded: unknown) =>
      fail(upgraded ? { status: 101, detail: error.message } : networkFailure('handshake', error, redactorOf(ticket)));
    const start = (onError: typeof failed): void => {
      const webSocket = connect(client, ticket, sockets, settings, fail);
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
          if (response.headers['sec-websocket-protocol'] !== subprotocol) fail({ code: 'subprotocol-mismatch' });
        })
        .on('unexpected-response', (_request, { statusCode: status, headers }: IncomingMessage) =>
          fail({ status, retryAfterMs: retryAfterMs(headers['retry-after'], headers.date) }),
        )
        .on('error', (error) => onError(error, upgraded))
        .on('open', () => subscriber.next({ webSocket, socket: (upgraded as IncomingMessage).socket, leave }));
    };
    // The ticket wasn't sent yet. A user's agent connects in its own way.
    const isAgain = (error: Error): boolean => settings.agent === undefined && wasCutShort(error);
    start((error, upgraded) => (isAgain(error) ? start(failed) : failed(error, upgraded)));
  }).pipe(deadline(Math.min(leftMs, handshakeTimeoutMs), late));
};

/**
 * Limits of `ws` that aren't options of this library. A healthy connection can exceed the defaults of `ws`: 60 pings
 * may arrive while the event loop is blocked, and a large frame may have many fragments.
 */
const limits = {
  /** How long the closing handshake may take, in ms, before the socket is destroyed. */
  closeTimeout: 1_000,
  /** How many pongs may be queued. 64 KiB contain at most 32 768 pings. */
  maxPendingAutoPongs: 100_000,
};

/**
 * Limits the fragments of a frame and the chunks of a fragment. Each costs about 128 bytes of memory, so together they
 * cost no more than the largest frame, or 4 MiB if that's more.
 */
const maxPieces = (maxFrameBytes: number): number => Math.max(32 * 1024, Math.floor(maxFrameBytes / 128));

const connect = (
  client: WebSocketClient,
  ticket: Ticket,
  { connectStream }: AttemptSockets,
  { tls, agent, maxFrameBytes }: Settings,
  fail: (facts: Omit<FailureFacts, 'stage'>) => void,
): WebSocket | undefined => {
  try {
    return new client.WebSocket(ticket.wss_url, [ticket.subprotocol], {
      ...withIdentityCheck(tls),
      agent,
      // Not called if there's an `agent`, which then creates the sockets.
      createConnection: () => new FrameSocket(connectStream(new URL(ticket.wss_url))),
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: maxFrameBytes,
      maxFragments: maxPieces(maxFrameBytes),
      maxBufferedChunks: maxPieces(maxFrameBytes),
      ...limits,
      // Not set in `headers`: they're passed to the agent, and Node's debug log prints the agent's options.
      finishRequest: (request) => {
        request.setHeader('authorization', `Bearer ${ticket.ticket.reveal()}`);
        request.end();
      },
    });
  } catch (cause) {
    fail({ code: 'invalid-options', detail: (cause as Error).message, cause });
    return undefined;
  }
};

// Closes an open connection with a closing handshake, and destroys any other.
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
