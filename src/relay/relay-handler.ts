import type { IncomingMessage, ServerResponse } from 'node:http';
import { catchError, defer, filter, map, type Observable, throwError, timeout } from 'rxjs';
import type { RelayFailureCode } from '../protocol/failures/meanings.js';
import { relayError } from '../browser/relay-error.js';
import { printable } from '../protocol/printable.js';
import { aFunction, checkRequired, clampMs, positiveMs, type Rule, validated } from '../protocol/validate.js';
import {
  type AllowedOrigins,
  checkCors,
  closeConnectionAfter,
  type Cors,
  originsRule,
  type StreamResponse,
  streamResponse,
  waitForClose,
} from './http.js';
import {
  connectionBusy,
  methodRefused,
  NotAuthorizedError,
  refusals,
  RelayFullError,
  retryAfterOf,
} from './refusals.js';
import { isClosing, isConnectAgain, type RelayMessage, sseText } from './relay-message.js';
import { admission, type PendingReceiver, type RelayReceiver } from './relay-options.js';
import type { RelayRefused } from './relay-reports.js';
import type { Relay } from './relay.js';
import type { RelayTopic } from './topic.js';

/** Identifies a client's user, for `maxClientsPerUser` and `relay.disconnect`. */
export interface RelayUser {
  /** The same for all clients of this user: a non-empty text, or a number, which equals its text. */
  readonly id: string | number;
}

/** Decides whether a request may receive the feed: `true` or a user allows it. */
export type Authorize = (request: IncomingMessage) => boolean | RelayUser | Promise<boolean | RelayUser>;

/** The options of a request listener. */
export interface RelayHandlerOptions {
  /**
   * Decides whether a request may receive the feed, for example by your app's session cookie or bearer token. May be
   * async. `true` allows the client. A user `{ id }` allows it too, and counts for `maxClientsPerUser` and {@link
   * Relay.disconnect}. `false`, `undefined` and `null` answer 403. Anything else, or an exception, answers 500:
   * `relay.events$` emits `client-failed`, and the first one is also a process warning. There's no default; `() =>
   * true` allows everyone.
   */
  readonly authorize: Authorize;
  /** How long `authorize` may take, in ms, before the answer is a 503 with `Retry-After`. @defaultValue 5 000 */
  readonly authorizeTimeoutMs?: number | undefined;
  /**
   * Returns an operator over the events of the feed. An authorized client receives its output instead of every frame.
   * Clients with the same function share one run of the operator. `undefined` selects the complete feed. Anything else,
   * or an exception, answers 500. @defaultValue the complete feed
   */
  readonly select?: ((request: IncomingMessage) => RelayTopic | undefined) | undefined;
  /**
   * Returns how much of the past a new page receives first, in ms, for example from the address of the request. Only
   * what the relay has: fill it from a log. @defaultValue only new events
   */
  readonly sinceMs?: ((request: IncomingMessage) => number | undefined) | undefined;
  /**
   * Other origins whose pages may receive the feed, such as `https://app.example.com`, with cookies. `'*'` allows every
   * page, without cookies. @defaultValue none: only the origin of the server
   */
  readonly allowOrigins?: AllowedOrigins | undefined;
}

/**
 * Creates a `node:http` request listener that sends a relay's messages as Server-Sent Events (HTML, 9.2).
 *
 * Answers `GET` with 200 and the stream, and a CORS preflight with 204. The other answers:
 *
 * - 400: the client sent the request before the previous answer on the same connection was complete (pipelining).
 * - 403: `authorize` refuses, the origin isn't allowed, or another site made the request without CORS
 *   (`Sec-Fetch-Site`).
 * - 405: another method.
 * - 500: `authorize` or `select` throws, or returns something invalid.
 * - 503 with `Retry-After`: the relay is full or closed, `authorize` takes too long, or the user has just been
 *   disconnected.
 * - 503 with `Retry-After` and the message `connect-again`: the feed has stopped, and the client has every event.
 *
 * The body of a refusal is JSON: `{ "error": { "status", "code", "message" } }`, with the code that the page reports.
 * A client counts for `maxClients` from its request on. Messages wait while the response is full. Over HTTP/1.1 the
 * connection ends with the stream.
 *
 * In Express, use `app.all('/feed', handler)`, because pages of other origins send `OPTIONS` first. In NestJS use
 * `TradeFeed.sse`.
 *
 * @param relay - see {@link createRelay}
 * @param options - see {@link RelayHandlerOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 * import { createRelay, relayHandler } from 'rx-trade-feed/relay';
 *
 * const relay = createRelay(tradeFeedEvents$('market'));
 * const feed = relayHandler(relay, {
 *   authorize: ({ headers }) => headers.authorization === 'Bearer of-your-app',
 *   allowOrigins: ['https://app.example.com'],
 * });
 * createServer((request, response) =>
 *   request.url === '/feed'
 *     ? feed(request, response)
 *     : response.writeHead(404).end(),
 * );
 * ```
 */
export const relayHandler = (
  relay: Relay,
  options: RelayHandlerOptions,
): ((request: IncomingMessage, response: ServerResponse) => void) => {
  const { authorize, authorizeTimeoutMs = 5_000, allowOrigins = [], select, sinceMs } = validated(options, rules);
  checkRequired(options, { authorize: rules.authorize });
  const warn = warnOnce();
  return (request, response) => {
    const cors = checkCors(request, allowOrigins);
    const refuse = refusal(response, cors);
    if (cors.refusal !== undefined) refuse(403, cors.refusal);
    else if (request.method === 'OPTIONS') response.writeHead(204, cors.headers).end();
    else if (request.method !== 'GET') refuse(405, methodRefused, { allow: 'GET, OPTIONS' });
    // Node gives a pipelined response no socket until the previous one ends, so one connection could take every slot.
    else if (!response.socket) refuse(400, connectionBusy, connectionClose(response));
    else {
      const target = streamResponse(response);
      if (target.isOver) return;
      const admission$ = defer(() => authorized$(authorize, request, authorizeTimeoutMs)).pipe(
        // Other code may have answered during the authorization.
        filter(() => !target.isOver),
        map((user) => ({ user, ...chosen({ select, sinceMs }, request) })),
      );
      const lastEventId = [request.headers['last-event-id']].flat()[0];
      const receiver: PendingReceiver = { lastEventId, response: target, [admission]: admission$ };
      stream(relay.messages$(receiver), response, target, { cors, refuse, warn });
    }
  };
};

const rules: Readonly<Record<keyof RelayHandlerOptions, Rule>> = {
  authorize: { ...aFunction, allowed: 'a function that decides who may receive: `() => true` allows everybody' },
  authorizeTimeoutMs: positiveMs,
  select: aFunction,
  sinceMs: aFunction,
  allowOrigins: originsRule,
};

/** Emits the user's id for an authorized request; `undefined` for `true`. */
const authorized$ = (
  authorize: Authorize,
  request: IncomingMessage,
  timeoutMs: number,
): Observable<string | undefined> =>
  defer(async () => userIdIn(await authorize(request))).pipe(
    // The app's error may contain private text, so it stays on the server.
    catchError((cause: unknown) => throwError(() => new NotAuthorizedError(500, authorizationFailed, { cause }))),
    map((id) => {
      if (id === false) throw new NotAuthorizedError(403, "This client isn't authorized. Sign in again.");
      return id;
    }),
    timeout({ first: clampMs(timeoutMs), with: () => throwError(() => new RelayFullError(lateText, lateReason)) }),
  );

const lateReason = 'authorize-timeout';
const lateText = '`authorize` took longer than `authorizeTimeoutMs`. Retry later.';

/**
 * Returns the id of the user, `undefined` for `true`, and `false` for a refusal.
 *
 * @throws TypeError for any other result. The text leaves the value out, because an id may be private
 */
const userIdIn = (result: unknown): string | false | undefined => {
  if (result === true) return undefined;
  if (!result) return false;
  const { id } = Object(result) as Partial<Record<keyof RelayUser, unknown>>;
  if ((typeof id === 'string' && id !== '') || Number.isFinite(id)) return String(id);
  const found = typeof result !== 'object' ? `a ${typeof result}` : `an object whose \`id\` is ${kindOf(id)}`;
  throw new TypeError(
    `\`authorize\` returned ${found}. Return true, false, or \`{ id }\` with a text that isn't empty ` +
      'or a finite number.',
  );
};

const kindOf = (id: unknown): string => {
  if (id === '') return 'an empty text';
  if (id === undefined) return 'missing';
  return typeof id === 'number' ? String(id) : `of the type ${id === null ? 'null' : typeof id}`;
};

const authorizationFailed =
  "Authorization failed: the server's `authorize` threw an error, or returned neither a boolean nor a user.";

const choiceFailed = "Selection failed: the server's `select` or `sinceMs` threw an error, or returned something else.";

const chosen = (
  { select, sinceMs }: Pick<RelayHandlerOptions, 'select' | 'sinceMs'>,
  request: IncomingMessage,
): Pick<RelayReceiver, 'select' | 'sinceMs'> => {
  try {
    const [topic, past]: readonly unknown[] = [select?.(request), sinceMs?.(request)];
    if (topic !== undefined && typeof topic !== 'function')
      throw new TypeError(`\`select\` returned ${typeof topic}. Return an operator, or undefined.`);
    if (past !== undefined && typeof past !== 'number')
      throw new TypeError(`\`sinceMs\` returned ${typeof past}. Return a number of ms, or undefined.`);
    return { select: topic as RelayTopic | undefined, sinceMs: past };
  } catch (cause) {
    throw new NotAuthorizedError(500, choiceFailed, { cause });
  }
};

/** Warns only about the first failure of each code, because every client may cause the same one. */
const warnOnce = (): ((code: RelayRefused['code'], text: string) => void) => {
  const warned = new Set<string>();
  return (code, text) => {
    if (warned.has(code)) return;
    warned.add(code);
    process.emitWarning(printable(text), { type: 'TradeFeedWarning', code });
  };
};

const failedText = (cause: unknown): string =>
  `A relay answered 500, because \`authorize\` or \`select\` failed: ${String(cause)} ` +
  '(This warning appears once. For later failures see `client-failed` in `relay.events$`.)';

const lateWarning =
  'A relay answered 503, because `authorize` took longer than `authorizeTimeoutMs`. Check what it waits for. ' +
  '(This warning appears once. For later clients see `client-refused` in `relay.events$`.)';

const refusal =
  (response: ServerResponse, { headers }: Cors) =>
  (status: number, message: string, more: Readonly<Record<string, string>> = {}, code?: RelayFailureCode): void => {
    if (response.headersSent) return;
    const body = JSON.stringify({ error: { status, code: relayError({ status, code }).code, message } });
    response.writeHead(status, {
      ...headers,
      ...more,
      'content-type': 'application/json',
      // A page only reads a body whose known length is short.
      'content-length': String(Buffer.byteLength(body)),
      'cache-control': 'no-store',
    });
    response.end(body);
  };

/** How a stream answers before its first message. */
interface Answers {
  readonly cors: Cors;
  readonly refuse: ReturnType<typeof refusal>;
  readonly warn: ReturnType<typeof warnOnce>;
}

const stream = (
  messages$: Observable<RelayMessage>,
  response: ServerResponse,
  target: StreamResponse,
  { cors, refuse, warn }: Answers,
): void => {
  const messages = messages$.subscribe({
    next: (message) => {
      // A middleware with a time limit may have ended the response. Writing now would emit `error`, and nothing listens
      // for it.
      if (target.isOver) return;
      if (!response.headersSent) {
        const [status, more] = isConnectAgain(message) ? [503, { 'retry-after': retryAfterOf(message) }] : [200, {}];
        // The connection ends with the stream, so chunks aren't needed. They'd cost three more writes a message.
        response.removeHeader('transfer-encoding');
        response.writeHead(status, { ...cors.headers, ...streamHeaders, ...connectionClose(response), ...more });
      }
      if (isClosing(message)) closeConnectionAfter(response);
      target.write(sseText(message));
    },
    error: (error: unknown) => {
      if (error instanceof NotAuthorizedError) {
        if (error.status === 500) warn('relay-failed', failedText(error.cause));
        refuse(error.status, error.message);
      } else if (error instanceof RelayFullError) {
        if (error.reason === 'closed') closeConnectionAfter(response);
        if (error.reason === lateReason) warn('relay-authorize-timeout', lateWarning);
        const { message, code } = refusals[error.reason];
        refuse(503, message, { 'retry-after': retryAfterOf(error) }, code);
      } else target.destroy();
    },
    complete: () => {
      void waitForClose(response);
      response.end();
    },
  });
  response.once('close', () => messages.unsubscribe());
};

/**
 * Ends the connection with the answer, so a page's next request can reach another replica. HTTP/2 forbids this header.
 */
const connectionClose = ({ req }: ServerResponse): Readonly<Record<string, string>> =>
  req.httpVersionMajor === 1 ? { connection: 'close' } : {};

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Keeps caches and compressing middleware from delaying frames. The last header is for nginx.
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};
