import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import { distinctUntilChanged, skipWhile } from 'rxjs';
import type { WebSocket, WebSocketServer } from 'ws';
import { CloseCode, CloseReason } from '../protocol/contract.js';
import {
  endHandshake,
  pathOf,
  type Refusal,
  refusal,
  refusalAnswer,
  refusalOfRoute,
  shuttingDown,
  streamPath,
  ticketPath,
} from './answers.js';
import { closing, Connection } from './connection.js';
import { type HttpHandlers, type ServerRequest, whenAnswering, whenResumed } from './http.js';
import type { ServiceState, TicketRecord } from './state.js';

/** The largest message that a client can send, in bytes. Tiny, because a client mustn't send any. */
const maxMessageBytes = 1024;

/** Creates the WebSocket side of the HTTP server: handshakes (contract, section 4.2), and the connections they open. */
export const createUpgrades = async (state: ServiceState) => {
  const open = connectionOpener(state);
  const createSockets = webSocketServers(state, await loadSockets());
  let sockets = createSockets();

  const refuse = (request: ServerRequest, socket: Socket, refused: Refusal, ticket?: TicketRecord): void => {
    const { status, code } = refused;
    state.emit({ type: 'handshake-refused', status, code, account: ticket?.account.id, feed: ticket?.feed });
    endHandshake(request, socket, refusalAnswer(refused, state.settings.errorBody));
  };

  const answer = (request: ServerRequest, socket: Socket, head: Buffer): void => {
    if (state.isShuttingDown) return refuse(request, socket, shuttingDown);
    const { authorization = '', 'x-api-key': apiKey } = request.headers;
    if (apiKey !== undefined) state.emit({ type: 'violation', rule: 'api-key-in-handshake' });
    const bearer = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
    // Reserves the ticket before checking it, so that it can't be used again even after a refusal.
    const ticket = bearer === undefined ? undefined : state.tickets.move(bearer, 'consumed');
    const admitted = bearer === undefined ? ticketMissing : admit(state, request, ticket);
    if ('code' in admitted) return refuse(request, socket, admitted, ticket);
    sockets.handleUpgrade(request, socket, head, (ws) => {
      socket.resume();
      open(ws, socket, admitted);
    });
  };

  const onUpgrade: HttpHandlers['onUpgrade'] = (request, socket, head) => {
    state.checkTarget(request.url);
    const malformed = refusalOfRoute(request.url, request.method) ?? refusalOfUpgrade(request);
    const endWaiting = waitWith(socket, head);
    if (malformed !== undefined) return whenResumed(state, socket, () => refuse(request, socket, malformed));
    whenAnswering(state, 'handshake', socket, (replaced) => {
      const early = endWaiting();
      if (replaced) endHandshake(request, socket, replaced);
      else answer(request, socket, early);
    });
  };

  // Waits until all connections are closed and have emitted `connection-closed`.
  const close = (): Promise<void> => {
    // A closed `ws` server accepts no more handshakes, so a restart needs a new one.
    const ended = sockets;
    sockets = createSockets();
    return promisify(ended.close.bind(ended))();
  };

  return { onUpgrade, close };
};

const connectionOpener = (state: ServiceState) => {
  let connectionCount = 0;
  return (ws: WebSocket, socket: Socket, { account, feed }: TicketRecord): void => {
    const shown = { account: account.id, feed, connection: (connectionCount += 1) };
    const connection: Connection = new Connection(feed, ws, socket, state.settings, {
      onViolation: (rule) => state.emit({ type: 'violation', rule, ...shown }),
      onClosed: (end) => {
        state.disconnect(account, connection);
        state.emit({ type: 'connection-closed', ...shown, ...end });
      },
    });
    followStalls(state, ws, socket);
    const earlier = state.connect(account, connection);
    state.emit({ type: 'handshake-accepted', ...shown });
    if (ws.protocol === '') state.emit({ type: 'violation', rule: 'no-subprotocol', ...shown });
    earlier?.close(closing.replaced);
  };
};

// A stalled service reads nothing, and what it writes waits in the socket.
const followStalls = ({ stalled$ }: ServiceState, ws: WebSocket, socket: Socket): void => {
  const following = stalled$
    .pipe(
      distinctUntilChanged(),
      skipWhile((isStalled) => !isStalled),
    )
    .subscribe((isStalled) => {
      if (isStalled) {
        ws.pause();
        socket.cork();
      } else {
        socket.uncork();
        ws.resume();
      }
    });
  ws.once('close', () => following.unsubscribe());
};

// Reads the socket of a pending handshake: Node notices that a client leaves only while it's reading. Returns a
// function that stops reading and returns the bytes that have arrived.
const waitWith = (socket: Socket, head: Buffer): (() => Buffer) => {
  const chunks = [head];
  const keep = (chunk: Buffer): unknown => chunks.push(chunk);
  const leave = (): unknown => socket.destroy();
  socket.on('data', keep).on('end', leave).on('error', leave);
  return () => {
    socket.off('data', keep).off('end', leave).off('error', leave).pause();
    return Buffer.concat(chunks);
  };
};

const webSocketServers = ({ settings, endpoints }: ServiceState, ws: Sockets): (() => WebSocketServer) => {
  const options = {
    noServer: true,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    // If `ws` checked text messages, invalid UTF-8 would close with 1007 instead of 1008.
    skipUTF8Validation: true,
    closeTimeout: settings.limits.closeTimeoutMs,
    WebSocket: pushOnly(ws),
    handleProtocols: (requested: ReadonlySet<string>) => {
      const { handshake } = endpoints;
      return (typeof handshake === 'object' && handshake.subprotocol) || ([...requested][0] ?? false);
    },
  };
  return () => new ws.WebSocketServer(options);
};

/**
 * Refuses a request that isn't a valid WebSocket handshake (RFC 6455, section 4.2.2). Doesn't reserve its ticket.
 */
const refusalOfUpgrade = ({ url, headers }: ServerRequest): Refusal | undefined => {
  const malformed = (message: string): Refusal => refusal(400, 'not-a-websocket-handshake', message);
  if (pathOf(url) === ticketPath) return malformed('The ticket endpoint does not accept upgrades.');
  if (headers.upgrade?.toLowerCase() !== 'websocket') return malformed('The Upgrade header must be "websocket".');
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? ''))
    return malformed('The Sec-WebSocket-Key header must be 16 bytes in base64.');
  if (headers['sec-websocket-version'] === '13') return undefined;
  const version = { 'Sec-WebSocket-Version': '13' };
  return refusal(426, 'upgrade-required', 'The Sec-WebSocket-Version header must be 13.', version);
};

const unauthorized = (why: 'missing' | 'unknown' | 'consumed' | 'expired' | 'revoked', message: string): Refusal =>
  refusal(401, `ticket-${why}`, message, { 'WWW-Authenticate': 'Bearer' });

const ticketMissing = unauthorized('missing', 'The Authorization header has no Bearer ticket.');

/**
 * Refuses a handshake (contract, section 7.2), or returns the ticket that admits it.
 *
 * Checks the ticket first, because it determines the feed. Only the address could ask for another feed, so any addition
 * to it (`/ws?feed=raw`) gets the 400 for a feed that doesn't match. If the client requests subprotocols, the ticket's
 * must be the only one. If it requests none, that's fine, because 7.2 refuses "an explicitly requested subprotocol".
 */
const admit = (
  { settings, capacity, connections }: ServiceState,
  { url, headers }: ServerRequest,
  ticket: TicketRecord | undefined,
): Refusal | TicketRecord => {
  if (ticket === undefined) return unauthorized('unknown', 'The ticket is unknown.');
  if (ticket.state === 'consumed') return unauthorized('consumed', 'The ticket was already used.');
  if (ticket.state === 'expired') return unauthorized('expired', 'The ticket has expired.');
  if (ticket.state === 'revoked') return unauthorized('revoked', 'The ticket was revoked.');
  if (url !== streamPath) return refusal(400, 'address-mismatch', 'The address is not the wss_url of the ticket.');
  const requested = headers['sec-websocket-protocol'] ?? settings.subprotocols[ticket.feed];
  if (requested.trim() !== settings.subprotocols[ticket.feed])
    return refusal(400, 'subprotocol-mismatch', 'The requested subprotocol is not that of the ticket.');
  const isFull = ticket.account.connection === undefined && connections.size >= capacity;
  return isFull
    ? refusal(503, 'capacity-full', 'The service is full: its maximum number of users is connected.')
    : ticket;
};

type Sockets = Pick<typeof import('ws'), 'WebSocket' | 'WebSocketServer'>;

/** Loads `ws` with the first service, so that an import works where it has no server: see docs/testing.md, jsdom. */
const loadSockets = async (): Promise<Sockets> => {
  const sockets: Partial<Sockets> = await import('ws');
  if (sockets.WebSocketServer === undefined)
    throw new Error(
      "The local service can't start: this test environment loads the build of `ws` for pages, which has no server. " +
        'In jest, begin the test file with /** @jest-environment node */, or set ' +
        "testEnvironmentOptions: { customExportConditions: ['node', 'node-addons'] }.",
    );
  return sockets as Sockets;
};

/**
 * Returns the class of a WebSocket that closes with 1008 `server push only` (contract, section 3.2) even if a client's message is too large.
 * `ws` would close with 1009 and no reason.
 */
const pushOnly = ({ WebSocket }: Sockets) =>
  class PushOnlySocket extends WebSocket {
    override close(code?: number, reason?: string | Buffer): void {
      if (code === 1009 && reason === undefined) super.close(CloseCode.serverPushOnly, CloseReason.serverPushOnly);
      else super.close(code, reason);
    }
  };
