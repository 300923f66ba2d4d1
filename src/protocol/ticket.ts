import * as E from 'fp-ts/lib/Either.js';
import { pipe } from 'fp-ts/lib/function.js';
import * as t from 'io-ts';
import { Feed } from './feed.js';
import { isLoopback } from './loopback.js';
import { isCredential, redactor, Secret } from './secret.js';
import { tryCall } from './try-call.js';

/** The credential of exactly one WebSocket handshake (contract, section 2.1): the fields of the wire, the secret wrapped. */
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
  /** The subprotocol that the handshake must ask for. */
  readonly subprotocol: string;
  /**
   * When the ticket runs out, in ms on this process's monotonic clock (`performance.now()`). Not a field of the wire:
   * `requestTicket` works it out as `expires_at` minus the `Date` of the response. Absent: no such deadline is known, or that `Date` is wrong
   * (it leaves a ticket that was just issued no time to live).
   */
  readonly deadlineMs?: number;
  /** Hides the ticket, and the key that it was issued for, in a text of the service. Not a field of the wire. */
  readonly redact?: (text: string) => string;
}

/** Gives what hides the secrets of a ticket in a text of the service. */
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

const stringThat = (name: string, is: (text: string) => boolean): t.Type<string> =>
  new t.Type<string>(
    name,
    (u): u is string => typeof u === 'string' && is(u),
    (u, context) => (typeof u === 'string' && is(u) ? t.success(u) : t.failure(u, context)),
    t.identity,
  );

// RFC 3339, 5.6; a leap second (:60) is a legal timestamp that Date.parse does not know.
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Reads an RFC 3339 timestamp as epoch ms; `NaN` when it is none. */
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
 * `wss_url` must be a `wss:` address (`ws:` for a loopback host alone) without credentials or fragment; `subprotocol` a
 * token of RFC 9110; `expires_at` an RFC 3339 timestamp. Encoding gives the wire's object back, with the ticket in plain.
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
    expires_at: stringThat('Timestamp', (text) => !Number.isNaN(parseTimestamp(text))),
    wss_url: stringThat('WssUrl', isSocketUrl),
    feed: Feed,
    subprotocol: stringThat('Subprotocol', (text) => token.test(text)),
  }),
  'Ticket',
);

/** Names the fields that a decoding found wrong (`body` when the value is no object); never their values. */
export const invalidFields = (decoded: E.Either<t.Errors, unknown>): readonly string[] =>
  E.isRight(decoded) ? [] : [...new Set(decoded.left.map(({ context }) => context[1]?.key || 'body'))];

/**
 * Reads the body of a ticket response; gives the ticket, or words for what is wrong with it.
 *
 * The words never quote the body, as `JSON.parse` and io-ts would: it may hold a ticket.
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
