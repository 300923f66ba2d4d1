import {
  catchError,
  concatMap,
  EMPTY,
  from,
  ignoreElements,
  last,
  map,
  type Observable,
  of,
  type OperatorFunction,
  startWith,
  takeUntil,
  timer,
} from 'rxjs';
import type * as undici from 'undici';
import type { Dispatcher } from 'undici';
import { resolveTicketOptions, type TicketSettings, type TradeFeedOptions } from '../options.js';
import { checkFeed } from '../protocol/feed-names.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import { parseHttpDate, retryAfterMs } from '../protocol/retry-after.js';
import { redactor, type Secret } from '../protocol/secret.js';
import { parseTicket } from '../protocol/parse-ticket.js';
import type { Ticket } from '../protocol/ticket.js';
import { parseTimestamp } from '../protocol/timestamp.js';
import { apiKey$ } from './api-key.js';
import { attemptFailure, networkFailure } from './attempt-failure.js';
import { deadline } from './deadline.js';
import { loadHttpClient } from './network-clients.js';
import { post$ } from './post.js';
import { type AttemptSockets, freshSockets } from './reusable-sockets.js';

/** Size limit of the body of a ticket response, far more than a ticket needs. */
const MAX_BODY_BYTES = 64 * 1024;
/** Longest time in ms to read the body of a refusal. Then the connection is closed. */
const DRAIN_MS = 1_000;

/**
 * Turns each `Feed` into a fresh `Ticket` by `POST {baseUrl}/v1/wss/tickets` (contract, section 4.1).
 *
 * Emits one ticket per feed, in order; completes with its source. Errors with a `TradeFeedError` of stage `ticket`:
 * `invalid-api-key`, `not-entitled`, `invalid-ticket-request`, `ticket-rate-limited`, `credential-service-unavailable`,
 * `ticket-request-failed`, `ticket-request-rejected`, `ticket-endpoint-unreachable`, `ticket-endpoint-without-tls`,
 * `untrusted-certificate`, `api-key-unavailable`, `invalid-ticket`, `invalid-options`. Never retries, never follows a redirect.
 * Unsubscribing ends the request and its socket.
 *
 * @param options - see {@link TradeFeedOptions}; `baseUrl`, `apiKey`, `ticketTimeoutMs`, `tls`, `dispatcher` and `classify` are used
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

/** Requests tickets as {@link requestTicket} does, over the sockets of an attempt. */
export const requestTicketOver = (sockets: AttemptSockets, settings: TicketSettings): OperatorFunction<Feed, Ticket> =>
  concatMap((feed) => {
    checkFeed(feed);
    sockets.openSpare();
    return apiKey$(settings).pipe(
      concatMap(async (key) => ({ key, client: await loadHttpClient() })),
      concatMap(({ key, client }) => ticket$(client, sockets, settings, feed, key)),
    );
  });

type Answer = { readonly ticket: Ticket } | { readonly refusal: FailureFacts };

const ticket$ = (
  client: typeof undici,
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
    // Without this header the server may choose any encoding (RFC 9110, 12.5.3), and this client decodes none.
    'accept-encoding': 'identity',
  };
  const body = JSON.stringify({ feed });
  const sentMs = performance.now();
  return post$({ client, url, headers, body, dispatcher, sockets }, (response) => answer$(response, sentMs)).pipe(
    deadline(ticketTimeoutMs, () => new Error(`no answer in ${ticketTimeoutMs} ms`)),
    catchError((error: unknown) => of({ refusal: networkFailure('ticket', error, redactor(key)) })),
    last(),
    map((answer) => {
      if ('refusal' in answer) throw attemptFailure(settings, answer.refusal);
      return { ...answer.ticket, redact: redactor(key, answer.ticket.ticket) };
    }),
  );
};

const answer$ = (response: Dispatcher.ResponseData, sentMs: number): Observable<Answer> =>
  response.statusCode === 200 ? issued$(response, sentMs) : refused$(response);

const issued$ = ({ headers, body }: Dispatcher.ResponseData, sentMs: number): Observable<Answer> =>
  from(textOf(body)).pipe(
    map((text): Answer => {
      const ticket = text === undefined ? `the body is longer than ${MAX_BODY_BYTES} bytes` : parseTicket(text);
      return typeof ticket === 'string'
        ? { refusal: { stage: 'ticket', code: 'invalid-ticket', detail: ticket } }
        : { ticket: { ...ticket, ...deadlineOf(ticket, header(headers, 'date'), sentMs) } };
    }),
  );

// The lifetime of the ticket is the difference of two times of the service, so the local clock does not matter. It is counted from the
// request, not from the response, which may have waited while the event loop was blocked. A new ticket cannot be expired. If its lifetime
// is not positive, the `Date` is wrong, for example from a proxy. Then the ticket has no deadline, and the service decides.
const deadlineOf = (ticket: Ticket, date: string | undefined, sentMs: number): Pick<Ticket, 'deadlineMs'> => {
  const lifetimeMs = parseTimestamp(ticket.expires_at) - (parseHttpDate(date) ?? Infinity);
  return lifetimeMs > 0 ? { deadlineMs: sentMs + lifetimeMs } : {};
};

// The failure depends only on the head, so it is emitted before the body is read: the deadline cannot replace it. The body is ignored.
const refused$ = ({ statusCode: status, headers, body }: Dispatcher.ResponseData): Observable<Answer> => {
  const waitMs = retryAfterMs(header(headers, 'retry-after'), header(headers, 'date'));
  return from(body.dump({ limit: MAX_BODY_BYTES })).pipe(
    catchError(() => EMPTY),
    takeUntil(timer(DRAIN_MS)),
    ignoreElements(),
    startWith({ refusal: { stage: 'ticket' as const, status, retryAfterMs: waitMs } }),
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
