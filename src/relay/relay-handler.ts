import type { IncomingMessage, ServerResponse } from 'node:http';
import { aFunction, checkGiven, type Rule, validated } from '../protocol/rules.js';
import { type Cors, corsOf, type Origins, originsRule } from './cors.js';
import type { Relay } from './relay.js';
import { noRoom, RelayFullError } from './relay-full-error.js';
import { type RelayMessage, sseText } from './relay-message.js';
import { type WrittenResponse, writtenResponse } from './written-response.js';

/** Who may receive from a relay over HTTP. */
export interface RelayHandlerOptions {
  /**
   * Says whether a request is let in: a look at the session cookie or the bearer token of your app. It may be async. `false` is a 403, an
   * exception a 500 (nobody else hears of it: log it there). There is no default: `() => true` lets everybody in who can reach the server.
   */
  readonly authorize: (request: IncomingMessage) => boolean | Promise<boolean>;
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
 * Answers `GET` with 200 and the stream, the preflight of CORS with 204, and else: 403 when `authorize` says no or the origin is not allowed,
 * 405 for another method, 500 when `authorize` throws, 503 with `Retry-After` when there is no room. Writes no more than the response takes.
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
  const { authorize, allowOrigins = [] } = validated(options, rules);
  checkGiven(options, { authorize: rules.authorize });
  return (request, response) => {
    const cors = corsOf(request, allowOrigins);
    const refuse = refusal(response, cors);
    if (!cors.isAllowed) refuse(403, 'This relay does not serve pages of that origin.');
    else if (request.method === 'OPTIONS') response.writeHead(204, cors.headers).end();
    else if (request.method !== 'GET') refuse(405, 'A relay answers to GET.', { allow: 'GET, OPTIONS' });
    else {
      // Before it is authorized: it may go meanwhile.
      const written = writtenResponse(response);
      isAuthorized(authorize, request).then(
        (isIn) =>
          isIn ? stream(relay, request, response, written, cors) : refuse(403, 'This relay does not let you in.'),
        () => refuse(500, 'The authorization failed.'),
      );
    }
  };
};

const rules: Readonly<Record<keyof RelayHandlerOptions, Rule>> = {
  authorize: { ...aFunction, allowed: 'a function that says who is let in: `() => true` lets everybody in' },
  allowOrigins: originsRule,
};

const isAuthorized = async (authorize: RelayHandlerOptions['authorize'], request: IncomingMessage): Promise<boolean> =>
  // What is not true, whatever it is, does not open the door.
  ((await authorize(request)) as unknown) === true;

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
  written: WrittenResponse,
  cors: Cors,
): void => {
  if (written.isOver) return;
  const lastEventId = [request.headers['last-event-id']].flat()[0];
  const messages = relay.messages$({ lastEventId, response: written }).subscribe({
    next: (message) => {
      // Such as a middleware that limits the time of an answer: to write behind that would be an error that nobody hears.
      if (written.isOver) return;
      if (!response.headersSent) response.writeHead(200, { ...cors.headers, ...streamHeaders });
      written.write(bytesOf(message));
    },
    error: (error: unknown) => {
      const full = error instanceof RelayFullError ? error : undefined;
      const after = { 'retry-after': String((full?.retryAfterMs ?? 0) / 1_000) };
      if (full) refusal(response, cors)(503, noRoom, after);
      else written.destroy();
    },
    complete: () => response.end(),
  });
  response.once('close', () => messages.unsubscribe());
};

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
