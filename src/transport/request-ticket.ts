import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  from,
  ignoreElements,
  last,
  map,
  noop,
  Observable,
  of,
  type OperatorFunction,
  startWith,
  switchMap,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import type { Dispatcher } from 'undici';
import {
  resolveTicketOptions,
  type TicketDispatcher,
  type TicketSettings,
  type TradeFeedOptions,
} from '../feed/options.js';
import { checkFeed, parseTimestamp } from '../protocol/contract.js';
import { attemptFailure } from '../protocol/failures/classify.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import { credentialEdge, excessOf, isCredential, redactor, Secret } from '../protocol/secret.js';
import type { Ticket } from '../protocol/ticket.js';
import { isError } from '../protocol/type-guards.js';
import { refusedOption, type Rule } from '../protocol/validate.js';
import { wasCutShort } from './addresses.js';
import { networkFailure, reachFailure } from './attempt-failure.js';
import { deadline } from './deadline.js';
import { type HttpClient, loadHttpClient } from './network-clients.js';
import { parseTicket } from './parse-ticket.js';
import { parseHttpDate, retryAfterMs } from './retry-after.js';
import { type AttemptSockets, createTicketClient, freshSockets, type TicketClient } from './sockets.js';

/** Size limit of a ticket response's body, far more than a ticket needs. */
const MAX_BODY_BYTES = 64 * 1024;
/** How long to read the body of a refusal, in ms, before closing the connection. */
const DRAIN_MS = 1_000;

/**
 * Requests a fresh `Ticket` for each `Feed` with `POST {baseUrl}/v1/wss/tickets` (contract, section 4.1).
 *
 * Emits one ticket per feed, in order; completes with its source. Errors with a `TradeFeedError` of stage `ticket`:
 * `invalid-api-key`, `not-entitled`, `invalid-ticket-request`, `ticket-rate-limited`, `credential-service-unavailable`,
 * `ticket-request-failed`, `ticket-request-rejected`, `ticket-endpoint-unreachable`, `ticket-endpoint-without-tls`,
 * `untrusted-certificate`, `api-key-unavailable`, `invalid-ticket`, `invalid-options`. Never retries, never follows a
 * redirect. Unsubscribing ends the request and its socket.
 *
 * @param options - see {@link TradeFeedOptions}; `baseUrl`, `apiKey`, `ticketTimeoutMs`, `tls`, `dispatcher` and
 *   `classify` are used
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { requestTicket } from 'rx-trade-feed';
 *
 * of('raw' as const)
 *   .pipe(requestTicket())
 *   .subscribe((ticket) => console.log(ticket.wss_url, ticket.expires_at));
 * ```
 */
export const requestTicket = (options?: TradeFeedOptions): OperatorFunction<Feed, Ticket> => {
  const settings = resolveTicketOptions(options);
  return requestTicketOver(freshSockets(settings), settings);
};

export const requestTicketOver = (sockets: AttemptSockets, settings: TicketSettings): OperatorFunction<Feed, Ticket> =>
  concatMap((feed) => {
    checkFeed(feed);
    sockets.openSpare?.();
    return apiKey$(settings).pipe(
      concatMap(async (key) => ({ key, client: await loadHttpClient(settings, sockets.hasOpened?.()) })),
      concatMap(({ key, client }) => ticket$(client, sockets, settings, feed, key)),
    );
  });

const ticket$ = (
  client: HttpClient,
  sockets: AttemptSockets,
  settings: TicketSettings,
  feed: Feed,
  key: Secret,
): Observable<Ticket> => {
  const { baseUrl, ticketTimeoutMs, dispatcher } = settings;
  const url = new URL(`${baseUrl.replace(/\/+$/, '')}/v1/wss/tickets`);
  const headers = {
    'x-api-key': key.reveal(),
    'content-type': 'application/json',
    accept: 'application/json',
    // Otherwise the server may choose any encoding (RFC 9110, 12.5.3), and this client decodes none.
    'accept-encoding': 'identity',
  };
  const post: Post = { client, url, headers, body: JSON.stringify({ feed }) };
  const answer$ = dispatcher ? sent$(post, acceptedBy(dispatcher, client), noop) : sentOver$(post, sockets);
  return answer$.pipe(
    deadline(ticketTimeoutMs, () => new Error(`no answer in ${ticketTimeoutMs} ms${sockets.triedAt(url)}`)),
    catchError((error: unknown) => of(networkFailure('ticket', error, redactor(key)))),
    last(),
    map((answer) => {
      if ('stage' in answer) throw reachFailure(settings, url.href, { ...answer, hasOpened: sockets.hasOpened?.() });
      return { ...answer, redact: redactor(key, answer.ticket) };
    }),
  );
};

interface Post {
  readonly client: HttpClient;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Answer = Ticket | FailureFacts;

/**
 * Sends the request over the last request's connection, or a new one. Stores the connection after a complete 200
 * response. Otherwise closes it, because a new one may reach another server at the load balancer.
 *
 * If a stored connection closes before the first byte of the answer, the request is repeated over a new one: the server
 * may close an idle connection at any time (RFC 9112, 9.3.1).
 */
const sentOver$ = (post: Post, sockets: AttemptSockets): Observable<Answer> => {
  const over$ = (client: TicketClient): Observable<Answer> =>
    sent$(post, client.dispatcher, (isComplete) => {
      if (isComplete && sockets.storeClient) sockets.storeClient(client);
      else client.destroy();
    });
  const once$ = defer(() => over$(createTicketClient(post.client, post.url, sockets.connectTicket)));
  const overNew$ = once$.pipe(catchError((error: unknown) => (wasCutShort(error) ? once$ : throwError(() => error))));
  return defer(() => {
    const stored = sockets.takeClient?.();
    if (stored === undefined) return overNew$;
    const socket = stored.socket();
    const bytesBefore = socket?.bytesRead;
    const wasUnanswered = () => stored.socket() === socket && socket?.bytesRead === bytesBefore;
    return over$(stored).pipe(catchError((error: unknown) => (wasUnanswered() ? overNew$ : throwError(() => error))));
  });
};

/** Calls `release` at the end. `isComplete`: a 200 response was read completely. */
const sent$ = (
  { client, ...post }: Post,
  dispatcher: Dispatcher,
  release: (isComplete: boolean) => void,
): Observable<Answer> =>
  new Observable((subscriber) => {
    const aborter = new AbortController();
    const sentMs = performance.now();
    let response: Dispatcher.ResponseData | undefined;
    subscriber.add(() => {
      const isComplete = response?.statusCode === 200 && response.body.readableEnded;
      if (!isComplete) aborter.abort();
      release(isComplete);
    });
    const options = { method: 'POST', signal: aborter.signal, dispatcher, headersTimeout: 0, bodyTimeout: 0 } as const;
    const received = client.request(post.url, { ...post, ...options }).then((head) => {
      response = head;
      // After an abort the body emits an error, which would end the process if nothing listened.
      head.body.on('error', noop);
      return head;
    });
    from(received)
      .pipe(switchMap((head) => (head.statusCode === 200 ? issued(head, sentMs) : refused$(head))))
      .subscribe(subscriber);
  });

/**
 * Makes a dispatcher of another version accept requests of this undici: `compose` of undici 7 gives it a handler with
 * the methods of version 7 and of version 8, which refuses the older ones.
 */
const acceptedBy = (dispatcher: TicketDispatcher, { Dispatcher: { prototype } }: HttpClient): Dispatcher => {
  const asTheirs: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
    // Version 8 refuses the option `dispatcher`. A redirect interceptor would send the key wherever a redirect points.
    const theirs = { ...options, dispatcher: undefined, maxRedirections: 0 };
    return dispatch(theirs, handler);
  };
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called for a dispatcher of another version
  return Reflect.apply(prototype.compose, dispatcher, [asTheirs]);
};

const issued = async ({ headers, body }: Dispatcher.ResponseData, sentMs: number): Promise<Answer> => {
  const text = await textOf(body);
  const ticket = text === undefined ? `the body is longer than ${MAX_BODY_BYTES} bytes` : parseTicket(text);
  if (typeof ticket === 'string') return { stage: 'ticket', code: 'invalid-ticket', detail: ticket };
  // Both times are the service's, so the local clock doesn't matter. The lifetime counts from the request, because the
  // response may have waited while the event loop was blocked.
  const lifetimeMs = parseTimestamp(ticket.expires_at) - (parseHttpDate(header(headers, 'date')) ?? Infinity);
  // A new ticket can't be expired, so the `Date` is wrong, perhaps a proxy's. Leaves it to the service.
  return lifetimeMs > 0 ? { ...ticket, deadlineMs: sentMs + lifetimeMs } : ticket;
};

// The failure depends only on the head. Emitting it before the body is read keeps the deadline from replacing it. The
// body is ignored.
const refused$ = ({ statusCode: status, headers, body }: Dispatcher.ResponseData): Observable<Answer> => {
  const waitMs = retryAfterMs(header(headers, 'retry-after'), header(headers, 'date'));
  return from(body.dump({ limit: MAX_BODY_BYTES })).pipe(
    catchError(() => EMPTY),
    takeUntil(timer(DRAIN_MS)),
    ignoreElements(),
    startWith({ stage: 'ticket' as const, status, retryAfterMs: waitMs }),
  );
};

const textOf = async (body: AsyncIterable<Buffer>): Promise<string | undefined> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const header = (headers: Dispatcher.ResponseData['headers'], name: string): string | undefined => {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
};

const aKeyFunction = 'a function that returns a string of visible ASCII characters';
const returnedKey: Rule = {
  allowed: aKeyFunction,
  problem: (key) => {
    const edge = credentialEdge(key);
    return edge === undefined ? `must be ${aKeyFunction}${excessOf(key)}` : `is a function whose key ${edge}`;
  },
  is: isCredential,
};

export const apiKey$ = (settings: TicketSettings): Observable<Secret> => {
  const { apiKey, ticketTimeoutMs } = settings;
  if (apiKey instanceof Secret) return of(apiKey);
  const unavailable = (detail: string, cause?: unknown) =>
    attemptFailure(settings, { stage: 'ticket', code: 'api-key-unavailable', detail, cause });
  return defer(async () => apiKey()).pipe(
    deadline(ticketTimeoutMs, () => new Error(`no answer in ${ticketTimeoutMs} ms`)),
    catchError((cause: unknown) => {
      throw unavailable(isError(cause) ? cause.message : 'it rejected', cause);
    }),
    map((key) => {
      if (!isCredential(key)) throw refusedOption('apiKey', returnedKey, key);
      return new Secret(key);
    }),
  );
};
