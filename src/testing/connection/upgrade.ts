import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Feed } from '../../protocol/feed.js';
import { hasCredential } from '../http/credential-in-url.js';
import type { HttpHandlers } from '../http/http-server.js';
import { endHandshake, refusalAnswer } from '../http/http-answer.js';
import { firstRefusal, type Refusal } from '../http/refusal.js';
import { pathOf, shuttingDown, upgradeRules } from '../http/route-rules.js';
import type { AccountRecord } from '../service/account.js';
import type { ServiceState } from '../service/service-state.js';
import type { TicketRecord } from '../ticket/ticket-book.js';
import { createConnection } from './connection.js';
import { admit } from './handshake.js';
import { PushOnlySocket } from './push-only-socket.js';

/** Bytes of a client's message that are read before it is called one. */
const maxMessageBytes = 1024;

/** The WebSocket side of the HTTP server. */
export interface Upgrades {
  /** Answers a handshake (contract, section 4.2). */
  readonly onUpgrade: HttpHandlers['onUpgrade'];
  /** Waits until each connection is gone and its end is told. */
  close(): Promise<void>;
}

/** Makes the WebSocket side of the HTTP server: handshakes, and the connections that come of them. */
export const createUpgrades = (state: ServiceState): Upgrades => {
  const { settings, tell } = state;
  const sockets = createWebSocketServer(settings.limits.closeTimeoutMs);
  let connectionsMade = 0;

  const refuse = (socket: Duplex, refusal: Refusal, ticket?: TicketRecord): void => {
    const { status, code } = refusal;
    tell({ type: 'handshake-refused', status, code, account: ticket?.account, feed: ticket?.feed });
    endHandshake(socket, refusalAnswer(refusal, settings.errorBody));
  };

  const open = (ws: WebSocket, socket: Duplex, account: AccountRecord, feed: Feed): void => {
    const told = { account: account.id, feed, connection: (connectionsMade += 1) };
    const connection = createConnection({
      feed,
      account: account.id,
      ws,
      socket,
      limits: settings.limits,
      scheduler: settings.scheduler,
      isDelayed: account.plan === 'free',
      onViolation: (rule) => tell({ type: 'violation', rule, ...told }),
      onClosed: (end) => {
        state.connections.remove(connection);
        tell({ type: 'connection-closed', ...told, ...end });
      },
    });
    const earlier = state.connections.register(connection);
    tell({ type: 'handshake-accepted', ...told });
    if (ws.protocol === '') tell({ type: 'violation', rule: 'no-subprotocol', ...told });
    earlier?.signal('replace');
  };

  const onUpgrade: Upgrades['onUpgrade'] = (request, socket, head) => {
    const { url, method, headers } = request;
    if (hasCredential(state, url)) tell({ type: 'violation', rule: 'credential-in-url' });
    const malformed = firstRefusal(upgradeRules, {
      path: pathOf(url),
      method,
      upgrade: String(headers.upgrade),
      key: headers['sec-websocket-key'] ?? '',
      version: headers['sec-websocket-version'] ?? '',
    });
    if (malformed !== undefined) return refuse(socket, malformed);
    if (state.isShuttingDown) return refuse(socket, shuttingDown);
    if (headers['x-api-key'] !== undefined) tell({ type: 'violation', rule: 'api-key-in-handshake' });
    const admission = admit(state, request);
    if ('refusal' in admission) return refuse(socket, admission.refusal, admission.ticket);
    const { account, feed } = admission;
    sockets.handleUpgrade(request, socket, head, (ws) => open(ws, socket, account, feed));
  };

  return { onUpgrade, close: () => promisify(sockets.close.bind(sockets))() };
};

const createWebSocketServer = (closeTimeout: number): WebSocketServer => {
  const options = {
    noServer: true,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    // A text message is a message, whether or not it is UTF-8: 1008, not 1007.
    skipUTF8Validation: true,
    closeTimeout,
    WebSocket: PushOnlySocket,
  };
  return new WebSocketServer(options);
};
