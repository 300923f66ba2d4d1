import * as E from 'fp-ts/lib/Either.js';
import { pipe } from 'fp-ts/lib/function.js';
import * as t from 'io-ts';
import { Feed } from './feed.js';
import { isLoopback } from './loopback.js';
import { isCredential, redactor, Secret } from './secret.js';
import { tryCall } from './try-call.js';

/** The credential of exactly one WebSocket handshake: the ticket response (contract, section 2.1), with the ticket as a `Secret`. */
export interface Ticket {
  /** Sent once, in the `Authorization` header of the handshake. */
  readonly ticket: Secret;
  readonly token_type: 'Bearer';
  /** RFC 3339 timestamp of the service: the deadline of the handshake. */
  readonly expires_at: string;
  /** The address of the handshake, used exactly as returned. */
  readonly wss_url: string;
  /** The feed that the service selected. */
  readonly feed: Feed;
  /** The subprotocol that the handshake must request. */
  readonly subprotocol: string;
  /**
   * When the ticket expires, in ms on this process's monotonic clock (`performance.now()`). Not part of the response: `requestTicket`
   * computes it as the time of the request plus the lifetime, which is `expires_at` minus the `Date` header. Absent if there is no `Date`,
   * or if the lifetime is not positive: a new ticket cannot be expired, so the `Date` is wrong.
   */
  readonly deadlineMs?: number;
  /** Hides the ticket and its API key in a text from the service. Not part of the response. */
  readonly redact?: (text: string) => string;
}

/** Returns a function that hides the secrets of a ticket in a text from the service. */
export const redactorOf = ({ ticket, redact = redactor(ticket) }: Ticket): ((text: string) => string) => redact;

/** The JSON object of the ticket response (contract, section 2.1). */
export interface WireTicket {
  readonly ticket: string;
  readonly token_type: 'Bearer';
  readonly expires_at: string;
  readonly wss_url: string;
  readonly feed: Feed;
  readonly subprotocol: string;
}

const secret = new t.Type<Secret, string>(
  'Secret',
  (u): u is Secret => u instanceof Secret,
  (u, context) => (isCredential(u) ? t.success(new Secret(u)) : t.failure(u, context)),
  (a) => a.reveal(),
);

const stringType = (name: string, is: (text: string) => boolean): t.Type<string> =>
  new t.Type<string>(
    name,
    (u): u is string => typeof u === 'string' && is(u),
    (u, context) => (typeof u === 'string' && is(u) ? t.success(u) : t.failure(u, context)),
    t.identity,
  );

// RFC 3339, 5.6. A leap second (:60) is valid, but `Date.parse` rejects it.
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Parses an RFC 3339 timestamp as epoch ms. Returns `NaN` for any other text. */
export const parseTimestamp = (text: string): number =>
  rfc3339.test(text) ? Date.parse(text.toUpperCase().replace(/:60(?=[.Z+-])/, ':59')) : NaN;

// RFC 9110, 5.6.2: a subprotocol is a token.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const isSocketUrl = (text: string): boolean => {
  const url = /\s/.test(text) ? undefined : tryCall(() => new URL(text));
  return (
    url !== undefined &&
    (url.protocol === 'wss:' || (url.protocol === 'ws:' && isLoopback(url))) &&
    url.hash === '' &&
    url.username === '' &&
    url.password === ''
  );
};

/**
 * Decodes the body of a ticket response (contract, section 2.1), wraps the secret and drops unknown fields.
 *
 * `wss_url` must be a `wss:` address (`ws:` only for a loopback host) without credentials or fragment; `subprotocol` a
 * token of RFC 9110; `expires_at` an RFC 3339 timestamp. `Ticket.encode` returns the original object, with the ticket in plain text.
 *
 * @example
 * ```ts
 * import { Ticket } from 'rx-trade-feed';
 *
 * Ticket.decode({ ticket: 'x' })._tag; // 'Left'
 * ```
 */
export const Ticket: t.Type<Ticket, WireTicket, unknown> = t.exact(
  t.type({
    ticket: secret,
    token_type: t.literal('Bearer'),
    expires_at: stringType('Timestamp', (text) => !Number.isNaN(parseTimestamp(text))),
    wss_url: stringType('WssUrl', isSocketUrl),
    feed: Feed,
    subprotocol: stringType('Subprotocol', (text) => token.test(text)),
  }),
  'Ticket',
);

/** Returns the names of the invalid fields (`body` if the value is not an object), never their values. */
export const invalidFields = (decoded: E.Either<t.Errors, unknown>): readonly string[] =>
  E.isRight(decoded) ? [] : [...new Set(decoded.left.map(({ context }) => context[1]?.key || 'body'))];

/**
 * Parses the body of a ticket response. Returns the ticket, or a description of the error.
 *
 * The errors of `JSON.parse` and io-ts quote the body, which may contain a ticket. The description never quotes it.
 */
export const parseTicket = (body: string): Ticket | string => {
  const decoded = pipe(
    E.tryCatch(
      (): unknown => JSON.parse(body),
      () => 'the body is not JSON',
    ),
    E.map((json) => Ticket.decode(json)),
  );
  if (E.isLeft(decoded)) return decoded.left;
  return E.isRight(decoded.right)
    ? decoded.right.right
    : `wrong or missing: ${invalidFields(decoded.right).join(', ')}`;
};
