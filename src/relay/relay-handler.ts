import type { IncomingMessage, ServerResponse } from 'node:http';
import { aFunction, checkGiven, positiveMs, type Rule, validated } from '../protocol/rules.js';
import { filter } from 'rxjs';
import { answerEnd, endConnectionAfter } from './answer-end.js';
import { type Authorize, authorized$, NotAuthorizedError } from './authorized.js';
import { admission, type AskingReceiver, selection } from './client-messages.js';
import { type Cors, corsOf, type Origins, originsRule } from './cors.js';
import type { Relay } from './relay.js';
import { noRoom, RelayFullError } from './relay-full-error.js';
import { isClosing, isConnectAgain, type RelayMessage, sseText } from './relay-message.js';
import { lateRetryAfterMs } from './relay-run.js';
import type { RelayTopic } from './topic.js';
import { writtenResponse } from './written-response.js';

/** Who may receive from a relay over HTTP. */
export interface RelayHandlerOptions {
  /**
   * Says whether a request is let in: a look at the session cookie or the bearer token of your app. It may be async. `true` lets the client
   * in, and so does `{ id }`, the user, for `maxClientsPerUser` and {@link Relay.disconnect}. Anything else is a 403, an exception a 500 (it
   * is not reported: log it there). There is no default: `() => true` lets everybody in who can reach the server.
   */
  readonly authorize: Authorize;
  /** How long `authorize` may take, in ms; after that the answer is 503 with `Retry-After`. @defaultValue 10 000 */
  readonly authorizeTimeoutMs?: number | undefined;
  /**
   * Says what a client that was let in gets instead of every frame: an operator over the events of the feed, which runs once for all clients
   * that get the same function. `undefined`: the whole feed. Anything else, and an exception, is a 500.
   *
   * @defaultValue the whole feed
   */
  readonly select?: ((request: IncomingMessage) => RelayTopic | undefined) | undefined;
  /**
   * The other origins whose pages may receive, such as `https://app.example.com`, with cookies; `'*'`: every page, without cookies.
   *
   * @defaultValue none: the origin of the server alone
   */
  readonly allowOrigins?: Origins | undefined;
}

/**
 * Makes a request listener of `node:http` that answers with the messages of a relay, as Server-Sent Events (HTML, 9.2).
 *
 * Answers `GET` with 200 and the stream, the preflight of CORS with 204, and else: 400 for a request that was sent before the answer to
 * the one before it on its connection was complete (pipelining), 403 when `authorize` says no or the origin is not allowed, 405 for another
 * method, 500 when `authorize` or `select` throws, 503 with `Retry-After` when there is no room, when `authorize` takes too long, when the relay is
 * closed, and, with the message `connect-again`, when its feed has stopped and there is nothing else to send. A client has a place of `maxClients` from its request on. Writes no more than the response takes. The connection ends with the stream.
 * In Express it is `app.all('/feed', handler)`: a page of another origin sends an `OPTIONS` first. In NestJS take `TradeFeed.sse`.
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
  const { authorize, authorizeTimeoutMs = 10_000, allowOrigins = [], select = everything } = validated(options, rules);
  checkGiven(options, { authorize: rules.authorize });
  return (request, response) => {
    const cors = corsOf(request, allowOrigins);
    const refuse = refusal(response, cors);
    if (!cors.isAllowed) refuse(403, 'This relay does not serve pages of that origin.');
    else if (request.method === 'OPTIONS') response.writeHead(204, cors.headers).end();
    else if (request.method !== 'GET') refuse(405, 'A relay answers to GET.', { allow: 'GET, OPTIONS' });
    // It waits for the answer before it: one connection could take every place.
    else if (!response.socket) refuse(400, 'This connection is busy with another answer.', connectionClose(response));
    else {
      const asking = {
        [admission]: authorized$(authorize, request, authorizeTimeoutMs),
        [selection]: () => selected(select, request),
      };
      stream(relay, request, response, cors, asking);
    }
  };
};

const rules: Readonly<Record<keyof RelayHandlerOptions, Rule>> = {
  authorize: { ...aFunction, allowed: 'a function that says who is let in: `() => true` lets everybody in' },
  authorizeTimeoutMs: positiveMs,
  select: aFunction,
  allowOrigins: originsRule,
};

type Select = NonNullable<RelayHandlerOptions['select']>;

const everything: Select = () => undefined;

const selected = (select: Select, request: IncomingMessage): RelayTopic | undefined => {
  const topic = tried(() => select(request));
  if (topic === undefined || typeof topic === 'function') return topic;
  throw new NotAuthorizedError(500, 'The selection failed.');
};

/** Gives what is not a topic for what threw: the exception is for the app alone. */
const tried = (use: () => RelayTopic | undefined): RelayTopic | undefined | null => {
  try {
    return use();
  } catch {
    return null;
  }
};

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
  asking: Required<Pick<AskingReceiver, typeof admission | typeof selection>>,
): void => {
  const written = writtenResponse(response);
  if (written.isOver) return;
  const receiver: AskingReceiver = {
    lastEventId: [request.headers['last-event-id']].flat()[0],
    response: written,
    // Somebody else may have answered meanwhile.
    ...asking,
    [admission]: asking[admission].pipe(filter(() => !written.isOver)),
  };
  const messages = relay.messages$(receiver).subscribe({
    next: (message) => {
      // Such as a middleware that limits the time of an answer: to write behind that would be an error that nobody hears.
      if (written.isOver) return;
      if (!response.headersSent) {
        const [status, more] = isConnectAgain(message) ? [503, retryAfter(lateRetryAfterMs)] : [200, {}];
        response.writeHead(status, { ...cors.headers, ...streamHeaders, ...connectionClose(response), ...more });
      }
      if (isClosing(message)) endConnectionAfter(response);
      written.write(bytesOf(message));
    },
    error: (error: unknown) => {
      const refuse = refusal(response, cors);
      if (error instanceof NotAuthorizedError) refuse(error.status, error.message);
      else if (error instanceof RelayFullError) {
        if (error.reason === 'closed') endConnectionAfter(response);
        refuse(503, noRoom, retryAfter(error.retryAfterMs));
      } else written.destroy();
    },
    complete: () => {
      void answerEnd(response);
      response.end();
    },
  });
  response.once('close', () => messages.unsubscribe());
};

const retryAfter = (ms: number) => ({ 'retry-after': String(ms / 1_000) });

/** Ends the connection with the answer, so that the next request of a page may reach another replica. HTTP/2 has no such header. */
const connectionClose = ({ req }: ServerResponse): Readonly<Record<string, string>> =>
  req.httpVersionMajor === 1 ? { connection: 'close' } : {};

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Neither a cache nor a compressing middleware may hold frames back; the last one is for nginx.
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

// The message of a batch is the same object for every client: it is encoded once.
const encoded = new WeakMap<RelayMessage, Buffer>();

const bytesOf = (message: RelayMessage): Buffer => {
  const known = encoded.get(message);
  if (known !== undefined) return known;
  const bytes = Buffer.from(sseText(message));
  encoded.set(message, bytes);
  return bytes;
};
