import * as E from 'fp-ts/lib/Either.js';
import { pipe } from 'fp-ts/lib/function.js';
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
import type { Dispatcher } from 'undici';
import { resolveTicketOptions, type TicketSettings, type TradeFeedOptions } from '../options.js';
import type { FailureFacts } from '../protocol/failure.js';
import type { Feed } from '../protocol/feed.js';
import { parseHttpDate, retryAfterMs } from '../protocol/retry-after.js';
import { redactor, type Secret } from '../protocol/secret.js';
import { invalidFields, parseTimestamp, Ticket } from '../protocol/ticket.js';
import { apiKey$ } from './api-key.js';
import { deadline } from './deadline.js';
import { failure } from './fail.js';
import { networkFailure } from './network-failure.js';
import { post$ } from './post.js';

/** More than any ticket needs; a longer body is none. */
const MAX_BODY_BYTES = 64 * 1024;
/** How long the body of a refusal is drained, in ms, before the connection is cut. */
const DRAIN_MS = 1_000;

/**
 * Turns each `Feed` into a fresh `Ticket` by `POST {baseUrl}/v1/wss/tickets` (contract, section 4.1).
 *
 * Emits one ticket per feed, in order; completes with its source. Errors with a `TradeFeedError` of stage `ticket`:
 * `invalid-api-key`, `not-entitled`, `invalid-ticket-request`, `ticket-rate-limited`, `credential-service-unavailable`,
 * `ticket-request-failed`, `ticket-request-rejected`, `ticket-endpoint-unreachable`, `untrusted-certificate`,
 * `api-key-unavailable`, `invalid-ticket`, `invalid-options`. Never retries, never follows a redirect.
 * Unsubscribing ends the request and its socket.
 *
 * @param options - see {@link TradeFeedOptions}; `baseUrl`, `apiKey`, `ticketTimeoutMs`, `tls`, `dispatcher` and `classify` count here
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
  return concatMap((feed) => apiKey$(settings).pipe(concatMap((key) => ticket$(settings, feed, key))));
};

type Answer = E.Either<FailureFacts, Ticket>;

const ticket$ = (settings: TicketSettings, feed: Feed, key: Secret): Observable<Ticket> => {
  const { baseUrl, ticketTimeoutMs, dispatcher, tls } = settings;
  const url = new URL(`${baseUrl.replace(/\/+$/, '')}/v1/wss/tickets`);
  const headers = { 'x-api-key': key.reveal(), 'content-type': 'application/json', accept: 'application/json' };
  const body = JSON.stringify({ feed });
  return post$({ url, headers, body, dispatcher, tls }, answer$).pipe(
    deadline(ticketTimeoutMs, () => new Error(`no answer in ${ticketTimeoutMs} ms`)),
    catchError((error: unknown) => of(E.left(networkFailure('ticket', error, redactor(key))))),
    last(),
    map(
      E.getOrElseW((facts) => {
        throw failure(settings, facts);
      }),
    ),
  );
};

const answer$ = (response: Dispatcher.ResponseData): Observable<Answer> =>
  response.statusCode === 200 ? issued$(response) : refused$(response);

const issued$ = ({ headers, body }: Dispatcher.ResponseData): Observable<Answer> => {
  const arrivedMs = performance.now();
  return from(textOf(body)).pipe(
    map((text) =>
      pipe(
        decode(text),
        E.map((ticket) => ({ ...ticket, ...deadlineOf(ticket, header(headers, 'date'), arrivedMs) })),
      ),
    ),
  );
};

const decode = (text: string | undefined): Answer => {
  const invalid = (detail: string) => E.left({ stage: 'ticket', code: 'invalid-ticket', detail } as const);
  if (text === undefined) return invalid(`the body is longer than ${MAX_BODY_BYTES} bytes`);
  // What JSON.parse and io-ts say of a bad body quotes it, and it may hold a ticket.
  const json = E.tryCatch(
    (): unknown => JSON.parse(text),
    () => 'the body is not JSON',
  );
  if (E.isLeft(json)) return invalid(json.left);
  const ticket = Ticket.decode(json.right);
  return E.isRight(ticket) ? ticket : invalid(`wrong or missing: ${invalidFields(ticket).join(', ')}`);
};

// The ticket's lifetime is a difference of two times of the service; the local wall clock is not asked.
const deadlineOf = (ticket: Ticket, date: string | undefined, arrivedMs: number): Pick<Ticket, 'deadlineMs'> => {
  const answeredAt = parseHttpDate(date);
  return answeredAt === undefined ? {} : { deadlineMs: arrivedMs + parseTimestamp(ticket.expires_at) - answeredAt };
};

// The failure is known from the head: it is emitted at once, so that no deadline can replace it, and the body is drained.
const refused$ = ({ statusCode: status, headers, body }: Dispatcher.ResponseData): Observable<Answer> => {
  const asked = retryAfterMs(header(headers, 'retry-after'), header(headers, 'date'));
  return from(body.dump({ limit: MAX_BODY_BYTES })).pipe(
    takeUntil(timer(DRAIN_MS)),
    catchError(() => EMPTY),
    ignoreElements(),
    startWith(E.left({ stage: 'ticket' as const, status, retryAfterMs: asked })),
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
