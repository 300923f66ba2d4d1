import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { filter, fromEvent, type Observable, of, race, switchMap, take, takeUntil, timer } from 'rxjs';
import { isFeed, type WireTicket } from '../protocol/contract.js';
import type { Feed } from '../protocol/feed.js';
import { tryCall } from '../protocol/type-guards.js';
import { invalidOption } from '../protocol/validate.js';
import {
  type Answer,
  jsonAnswer,
  pathOf,
  type Refusal,
  refusal,
  refusalAnswer,
  refusalOfRoute,
  sendAnswer,
  shuttingDown,
  ticketPath,
} from './answers.js';
import type { Endpoints, HandshakeBehavior, ServiceSettings } from './service-options.js';
import { type AccountRecord, countInWindow, type ServiceState } from './state.js';

/** A request that a server has received, so `url` and `method` are set. */
export type ServerRequest = IncomingMessage & { readonly url: string; readonly method: string };

export interface HttpHandlers {
  readonly onRequest: (request: ServerRequest, response: ServerResponse) => void;
  readonly onUpgrade: (request: ServerRequest, socket: Socket, head: Buffer) => void;
}

/**
 * Starts an HTTP server, with TLS if `tls` is set.
 *
 * @throws TradeFeedError with code `invalid-options` for the key or the certificate; the system's error if it can't
 *   listen on the port
 */
export const startHttpServer = async (
  { port, tls, limits: { requestTimeoutMs } }: Pick<ServiceSettings, 'port' | 'tls' | 'limits'>,
  { onRequest, onUpgrade }: HttpHandlers,
): Promise<{ port: number; unref: () => void; close: (timeoutMs: number) => Promise<void> }> => {
  const timeouts = {
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    // Node checks its timeouts at this interval, so a request can outlast its timeout by that much.
    connectionsCheckingInterval: Math.min(Math.ceil(requestTimeoutMs / 10), 1_000),
  };
  const listener = onRequest as RequestListener;
  const server = tls
    ? createSecure({ ...timeouts, ...tls, handshakeTimeout: requestTimeoutMs }, listener)
    : createServer(timeouts, listener);
  const sockets = new Set<Socket>();
  // Tracks all TCP sockets, because Node's server loses sight of those under TLS and after an upgrade.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', onUpgrade);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    unref: () => void server.unref(),
    // Resolves once all clients have disconnected.
    close: async (timeoutMs) => {
      const closed = once(server, 'close');
      server.close();
      const timeout = setTimeout(() => sockets.forEach((socket) => socket.destroy()), timeoutMs);
      await closed;
      clearTimeout(timeout);
    },
  };
};

const createSecure = (options: ServerOptions, listener: RequestListener): Server => {
  try {
    return createTlsServer(options, listener);
  } catch (cause) {
    throw invalidOption('tls', `a PEM key and its PEM certificate (${(cause as Error).message})`);
  }
};

const tooLarge = refusal(413, 'request-too-large', 'The body is too large.', { Connection: 'close' });
const upgrade = { Upgrade: 'websocket', Connection: 'Upgrade' };
const upgradeRequired = refusal(426, 'upgrade-required', 'This address accepts only WebSocket handshakes.', upgrade);

export const createRequestHandler = (state: ServiceState): HttpHandlers['onRequest'] => {
  const { errorBody, limits } = state.settings;

  const answerOf = (request: IncomingMessage, body: Buffer | 'too-large'): Answer => {
    if (body === 'too-large') return refusalAnswer(tooLarge, errorBody);
    // Comes after reading the body, because a shutdown may have started in the meantime.
    if (state.isShuttingDown) return refusalAnswer(shuttingDown, errorBody);
    const { 'content-type': contentType = '', 'x-api-key': apiKey } = request.headers;
    // Section 7.1 refuses invalid content, but not a wrong `Content-Type`.
    if (body.byteLength > 0 && !/^application\/json *(;|$)/i.test(contentType))
      state.emit({ type: 'violation', rule: 'content-type' });
    // If a client sends the header twice, Node joins the values, and the result isn't a valid key.
    return answerTicketRequest(state, (apiKey ?? '') as string, body);
  };

  return (request, response) => {
    const { url, method, socket } = request;
    state.checkTarget(url);
    const refused = refusalOfRoute(url, method);
    if (refused) state.emit({ type: 'violation', rule: refused.status === 404 ? 'unknown-path' : 'wrong-method' });
    if (refused || pathOf(url) !== ticketPath) {
      const why = refused ?? upgradeRequired;
      return whenResumed(state, socket, () => sendAnswer(response, refusalAnswer(why, errorBody)));
    }
    readBody(request, limits.requestBytes, (body) =>
      whenAnswering(state, 'ticket', socket, (replaced) => sendAnswer(response, replaced ?? answerOf(request, body))),
    );
  };
};

/**
 * Calls `then` once with the body of a request, or with `too-large`; never if the client disconnects first. Drains the
 * rest of a larger body, so that the client gets to read the answer. The server's timeouts apply.
 */
const readBody = (request: IncomingMessage, maxBytes: number, then: (body: Buffer | 'too-large') => void): void => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const keep = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes <= maxBytes) return;
    request.off('data', keep).off('end', end).resume();
    then('too-large');
  };
  const end = (): void => then(Buffer.concat(chunks));
  request.on('data', keep).on('end', end);
};

/** Answers a ticket request (contract, section 4.1): a ticket, or the first refusal that applies. */
const answerTicketRequest = (state: ServiceState, apiKey: string, body: Buffer): Answer => {
  const { settings, tickets, wssUrl: wss_url } = state;
  const account = state.credentialsFail ? undefined : state.keys.get(apiKey);
  const admitted = admit(state, account, feedIn(body));
  if ('code' in admitted) {
    const { status, code, headers } = admitted;
    const retryAfter = headers?.['Retry-After'];
    const retryAfterSeconds = retryAfter === undefined ? undefined : Number(retryAfter);
    state.emit({ type: 'ticket-refused', status, code, account: account?.id, retryAfterSeconds });
    return refusalAnswer(admitted, settings.errorBody);
  }
  const { owner, feed } = admitted;
  const ticket: WireTicket = {
    ticket: tickets.issue(owner, feed),
    token_type: 'Bearer',
    // Uses the same clock as the `Date` header, because a client subtracts one from the other.
    expires_at: new Date(Date.now() + settings.limits.ticketLifetimeMs).toISOString(),
    wss_url,
    feed,
    subprotocol: settings.subprotocols[feed],
  };
  state.emit({ type: 'ticket-issued', account: owner.id, feed, expiresAt: ticket.expires_at });
  return jsonAnswer(200, ticket);
};

/**
 * Refuses a ticket request (contract, section 7.1), or returns the account that gets the ticket.
 *
 * The contract doesn't say in which order. No key can be checked while the credential service is down, so its 503 comes
 * first. The window belongs to an account, so 429 follows 401 and 403. It limits requests, not tickets, so a request
 * that gets 422 counts too, and 422 comes last.
 */
const admit = (
  { credentialsFail, settings: { limits, scheduler } }: ServiceState,
  account: AccountRecord | undefined,
  feed: unknown,
): Refusal | { readonly owner: AccountRecord; readonly feed: Feed } => {
  if (credentialsFail)
    return refusal(503, 'credential-service-unavailable', 'The credential service is not available.');
  if (account === undefined) {
    const message = 'The X-API-Key header is missing or is not a valid key.';
    return refusal(401, 'invalid-api-key', message, { 'WWW-Authenticate': 'ApiKey' });
  }
  if (!account.active) return refusal(403, 'account-inactive', 'The account is not active.');
  if (!account.entitled) return refusal(403, 'not-entitled', 'The account is not entitled to the stream.');
  const { window, retryAfterSeconds } = countInWindow(account.window, scheduler.now(), limits);
  account.window = window;
  if (retryAfterSeconds !== undefined) {
    const retryAfter = { 'Retry-After': String(retryAfterSeconds) };
    return refusal(429, 'rate-limited', 'Too many ticket requests in this window.', retryAfter);
  }
  if (feed === notAnObject)
    return refusal(422, 'invalid-body', 'The body must be a JSON object, sent as application/json.');
  return isFeed(feed) ? { owner: account, feed } : refusal(422, 'unknown-feed', 'The feed must be "market" or "raw".');
};

const notAnObject = Symbol('not a JSON object');

/**
 * Returns the feed that the optional body selects, unchecked (contract, section 2.2): `market` if there's no body or no
 * `feed` in it. A body must be a JSON object in UTF-8; other fields are ignored.
 */
const feedIn = (body: Buffer): unknown => {
  if (body.byteLength === 0) return 'market';
  const json = tryCall((): unknown => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)));
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return notAnObject;
  return 'feed' in json ? json.feed : 'market';
};

/**
 * Calls `next` once a request may be answered: after the delay, and not during a stall. A shutdown cuts both short.
 * Never calls it if the client leaves first.
 */
export const whenResumed = (state: ServiceState, socket: Socket, next: () => void, delayMs = 0): void => {
  const stopping$ = state.stalled$.pipe(filter(() => state.isShuttingDown));
  const delay$: Observable<unknown> = delayMs === 0 ? of(0) : race(timer(delayMs, state.settings.scheduler), stopping$);
  delay$
    .pipe(
      switchMap(() => state.stalled$),
      filter((isStalled) => !isStalled),
      take(1),
      takeUntil(fromEvent(socket, 'close')),
    )
    .subscribe(next);
};

/**
 * Calls `answer` when it's time to answer a request: with the answer that a test has set, or `undefined` for the
 * contract's. Cuts the connection instead if the endpoint is unreachable.
 */
export const whenAnswering = (
  state: ServiceState,
  endpoint: keyof Endpoints,
  socket: Socket,
  answer: (replaced: Answer | undefined) => void,
): void => {
  const behavior = state.endpoints[endpoint];
  const replace = (): void => {
    const replaced = state.isShuttingDown ? undefined : replacedAnswer(behavior);
    if (replaced === undefined) return answer(undefined);
    const isCut = replaced === 'unreachable';
    state.emit({ type: 'fault', endpoint, status: isCut ? undefined : replaced.status });
    if (isCut) socket.destroy();
    else answer(replaced);
  };
  whenResumed(state, socket, replace, typeof behavior === 'string' ? 0 : behavior.delayMs);
};

const replacedAnswer = (behavior: HandshakeBehavior): Answer | 'unreachable' | undefined => {
  if (typeof behavior === 'string') return behavior === 'unreachable' ? behavior : undefined;
  const { status = 200, headers, body = '' } = behavior;
  if (behavior.status === undefined && headers === undefined && behavior.body === undefined) return undefined;
  const ours = jsonAnswer(status, undefined, { 'Content-Length': String(Buffer.byteLength(body)) }).headers;
  // In lower case, so that a test's header replaces the service's.
  const named = Object.entries({ ...ours, ...headers }).map(([name, value]) => [name.toLowerCase(), value]);
  return { status, headers: Object.fromEntries(named) as Answer['headers'], body };
};
