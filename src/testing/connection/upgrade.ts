import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Feed } from '../../protocol/feed.js';
import type { HttpHandlers } from '../http/http-server.js';
import { endHandshake, refusalAnswer } from '../http/http-answer.js';
import { firstRefusal, type Refusal } from '../http/refusal.js';
import { hasCredential } from '../http/request-handler.js';
import { pathOf, shuttingDown, upgradeRules } from '../http/route-rules.js';
import type { AccountRecord } from '../service/account.js';
import type { ServiceState } from '../service/service-state.js';
import type { TicketRecord } from '../ticket/ticket-store.js';
import { createConnection } from './connection.js';
import { admit } from './handshake.js';
import { PushOnlySocket } from './push-only-socket.js';

/** The maximum size of a client's message, in bytes. A client must send no messages, so none needs to be read. */
const maxMessageBytes = 1024;

/** The WebSocket side of the HTTP server. */
export interface Upgrades {
  /** Answers a handshake (contract, section 4.2). */
  readonly onUpgrade: HttpHandlers['onUpgrade'];
  /** Waits until all connections are closed and their `connection-closed` events are emitted. */
  close(): Promise<void>;
}

/** Creates the WebSocket side of the HTTP server: handshakes, and the connections that they open. */
export const createUpgrades = (state: ServiceState): Upgrades => {
  const { settings, emit } = state;
  const sockets = createWebSocketServer(settings.limits.closeTimeoutMs);
  let connectionCount = 0;

  const refuse = (socket: Duplex, refusal: Refusal, ticket?: TicketRecord): void => {
    const { status, code } = refusal;
    emit({ type: 'handshake-refused', status, code, account: ticket?.account, feed: ticket?.feed });
    endHandshake(socket, refusalAnswer(refusal, settings.errorBody));
  };

  const open = (ws: WebSocket, socket: Duplex, account: AccountRecord, feed: Feed): void => {
    const connectionFields = { account: account.id, feed, connection: (connectionCount += 1) };
    const connection = createConnection({
      feed,
      account: account.id,
      ws,
      socket,
      limits: settings.limits,
      scheduler: settings.scheduler,
      isDelayed: account.plan === 'free',
      onViolation: (rule) => emit({ type: 'violation', rule, ...connectionFields }),
      onClosed: (end) => {
        state.connections.remove(connection);
        emit({ type: 'connection-closed', ...connectionFields, ...end });
      },
    });
    const earlier = state.connections.register(connection);
    emit({ type: 'handshake-accepted', ...connectionFields });
    if (ws.protocol === '') emit({ type: 'violation', rule: 'no-subprotocol', ...connectionFields });
    earlier?.signal('replace');
  };

  const onUpgrade: Upgrades['onUpgrade'] = (request, socket, head) => {
    const { url, method, headers } = request;
    if (hasCredential(state, url)) emit({ type: 'violation', rule: 'credential-in-url' });
    const malformed = firstRefusal(upgradeRules, {
      path: pathOf(url),
      method,
      upgrade: String(headers.upgrade),
      key: headers['sec-websocket-key'] ?? '',
      version: headers['sec-websocket-version'] ?? '',
    });
    if (malformed !== undefined) return refuse(socket, malformed);
    if (state.isShuttingDown) return refuse(socket, shuttingDown);
    if (headers['x-api-key'] !== undefined) emit({ type: 'violation', rule: 'api-key-in-handshake' });
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
    // Without the check of `ws`, a text message with invalid UTF-8 is closed with 1008 `server push only`, not with 1007.
    skipUTF8Validation: true,
    closeTimeout,
    WebSocket: PushOnlySocket,
  };
  return new WebSocketServer(options);
};
