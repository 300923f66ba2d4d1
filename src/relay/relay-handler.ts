import type { IncomingMessage, ServerResponse } from 'node:http';
import { filter } from 'rxjs';
import { aFunction, checkRequired, positiveMs, type Rule, validated } from '../protocol/rules.js';
import { type Authorize, authorized$, NotAuthorizedError } from './authorized.js';
import { type AllowedOrigins, checkCors, type Cors, originsRule } from './cors.js';
import { closeConnectionAfter, waitForClose, streamResponse } from './http-response.js';
import type { Relay } from './relay.js';
import { connectionBusy, noRoom, originRefused } from './refusal-texts.js';
import { RelayFullError } from './relay-full-error.js';
import { isClosing, isConnectAgain, type RelayMessage, sseText } from './relay-message.js';
import { authorization, type PendingReceiver, selection } from './relay-receiver.js';
import { retryAfterOf } from './retry-after.js';
import type { RelayTopic } from './topic.js';

/** The options of a request listener. */
export interface RelayHandlerOptions {
  /**
   * Decides whether a request may receive the feed, for example by the session cookie or the bearer token of your app. It may be async. `true`
   * allows the client. A user `{ id }` also allows it, and is used for `maxClientsPerUser` and {@link Relay.disconnect}. Any other result is a 403.
   * An exception is a 500; the relay does not report it, so log it in `authorize`. There is no default: `() => true` allows every client.
   */
  readonly authorize: Authorize;
  /** How long `authorize` may take, in ms. After that the answer is 503 with `Retry-After`. @defaultValue 10 000 */
  readonly authorizeTimeoutMs?: number | undefined;
  /**
   * Returns an operator over the events of the feed. An authorized client receives its output instead of every frame. The operator runs once for
   * all clients with the same function. `undefined` selects the complete feed. Any other result, and an exception, is a 500.
   *
   * @defaultValue the complete feed
   */
  readonly select?: ((request: IncomingMessage) => RelayTopic | undefined) | undefined;
  /**
   * Other origins whose pages may receive the feed, such as `https://app.example.com`, with cookies. `'*'` allows every page, without cookies.
   *
   * @defaultValue none: only the origin of the server
   */
  readonly allowOrigins?: AllowedOrigins | undefined;
}

/**
 * Creates a request listener of `node:http` that answers with the messages of a relay, as Server-Sent Events (HTML, 9.2).
 *
 * Answers `GET` with 200 and the stream, and the preflight of CORS with 204. The other answers:
 *
 * - 400: the client sent the request before the previous answer on the same connection was complete (pipelining).
 * - 403: `authorize` refuses, or the origin is not allowed.
 * - 405: another method.
 * - 500: `authorize` or `select` throws.
 * - 503 with `Retry-After`: there is no room, `authorize` takes too long, the user was disconnected meanwhile, or the relay is closed.
 * - 503 with `Retry-After` and the message `connect-again`: the feed has stopped, and the client has every event.
 *
 * A client counts for `maxClients` from its request on. While the response is full, messages wait. Over HTTP/1.1 the connection ends with the
 * stream.
 *
 * In Express use `app.all('/feed', handler)`: a page of another origin sends an `OPTIONS` request first. In NestJS use `TradeFeed.sse`.
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
 * createServer((request, response) => (request.url === '/feed' ? feed(request, response) : response.writeHead(404).end()));
 * ```
 */
export const relayHandler = (
  relay: Relay,
  options: RelayHandlerOptions,
): ((request: IncomingMessage, response: ServerResponse) => void) => {
  const {
    authorize,
    authorizeTimeoutMs = 10_000,
    allowOrigins = [],
    select = completeFeed,
  } = validated(options, rules);
  checkRequired(options, { authorize: rules.authorize });
  return (request, response) => {
    const cors = checkCors(request, allowOrigins);
    const refuse = refusal(response, cors);
    if (!cors.isAllowed) refuse(403, originRefused);
    else if (request.method === 'OPTIONS') response.writeHead(204, cors.headers).end();
    else if (request.method !== 'GET') refuse(405, 'A relay accepts GET only.', { allow: 'GET, OPTIONS' });
    // Node assigns no socket to the response of a pipelined request until the previous one ends. One connection could take every slot.
    else if (!response.socket) refuse(400, connectionBusy, connectionClose(response));
    else {
      const pending = {
        [authorization]: authorized$(authorize, request, authorizeTimeoutMs),
        [selection]: () => selectedTopic(select, request),
      };
      stream(relay, request, response, cors, pending);
    }
  };
};

const rules: Readonly<Record<keyof RelayHandlerOptions, Rule>> = {
  authorize: { ...aFunction, allowed: 'a function that decides who may receive: `() => true` allows everybody' },
  authorizeTimeoutMs: positiveMs,
  select: aFunction,
  allowOrigins: originsRule,
};

type Select = NonNullable<RelayHandlerOptions['select']>;

const completeFeed: Select = () => undefined;

const selectedTopic = (select: Select, request: IncomingMessage): RelayTopic | undefined => {
  let topic: unknown;
  try {
    topic = select(request);
  } catch {
    // The message of the exception may be private.
    throw selectionError();
  }
  if (topic === undefined || typeof topic === 'function') return topic as RelayTopic | undefined;
  throw selectionError();
};

const selectionError = () =>
  new NotAuthorizedError(
    500,
    'The selection failed: the function `select` of the server threw an error, or did not return an operator.',
  );

const refusal =
  (response: ServerResponse, { headers }: Cors) =>
  (status: number, message: string, more: Readonly<Record<string, string>> = {}): void => {
    if (response.headersSent) return;
    const body = JSON.stringify({ error: { status, message } });
    response.writeHead(status, {
      ...headers,
      ...more,
      'content-type': 'application/json',
      'cache-control': 'no-store',
    });
    response.end(body);
  };

const stream = (
  relay: Relay,
  request: IncomingMessage,
  response: ServerResponse,
  cors: Cors,
  pending: Required<Pick<PendingReceiver, typeof authorization | typeof selection>>,
): void => {
  const target = streamResponse(response);
  if (target.isOver) return;
  const receiver: PendingReceiver = {
    lastEventId: [request.headers['last-event-id']].flat()[0],
    response: target,
    ...pending,
    // Other code may have answered during the authorization.
    [authorization]: pending[authorization].pipe(filter(() => !target.isOver)),
  };
  const messages = relay.messages$(receiver).subscribe({
    next: (message) => {
      // For example, a middleware with a time limit has ended the response. A write after the end would emit `error`, which has no listener.
      if (target.isOver) return;
      if (!response.headersSent) {
        const [status, more] = isConnectAgain(message) ? [503, retryAfter(message)] : [200, {}];
        response.writeHead(status, { ...cors.headers, ...streamHeaders, ...connectionClose(response), ...more });
      }
      if (isClosing(message)) closeConnectionAfter(response);
      target.write(bytesOf(message));
    },
    error: (error: unknown) => {
      const refuse = refusal(response, cors);
      if (error instanceof NotAuthorizedError) refuse(error.status, error.message);
      else if (error instanceof RelayFullError) {
        if (error.reason === 'closed') closeConnectionAfter(response);
        refuse(503, noRoom, retryAfter(error));
      } else target.destroy();
    },
    complete: () => {
      void waitForClose(response);
      response.end();
    },
  });
  response.once('close', () => messages.unsubscribe());
};

const retryAfter = (refusal: RelayFullError | RelayMessage) => ({ 'retry-after': retryAfterOf(refusal) });

/** Ends the connection with the answer, so that the next request of a page may reach another replica. HTTP/2 forbids this header. */
const connectionClose = ({ req }: ServerResponse): Readonly<Record<string, string>> =>
  req.httpVersionMajor === 1 ? { connection: 'close' } : {};

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Prevents that a cache or a compressing middleware delays frames. The last header is for nginx.
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

// All clients receive the same message object of a batch, so it is encoded once.
const encoded = new WeakMap<RelayMessage, Buffer>();

const bytesOf = (message: RelayMessage): Buffer => {
  const cached = encoded.get(message);
  if (cached !== undefined) return cached;
  const bytes = Buffer.from(sseText(message));
  encoded.set(message, bytes);
  return bytes;
};
