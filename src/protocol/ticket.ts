import * as t from 'io-ts';
import { Feed } from './feed.js';
import { excessOf, isCredential, Secret } from './secret.js';
import { ticketFields, type WireTicket } from './contract.js';

/**
 * The credential of exactly one WebSocket handshake: the ticket response (contract, section 2.1), with the ticket as a
 * `Secret`.
 */
export interface Ticket {
  /** Sent once, in the `Authorization` header of the handshake. */
  readonly ticket: Secret;
  readonly token_type: 'Bearer';
  /** RFC 3339 timestamp of the service: the deadline of the handshake. */
  readonly expires_at: string;
  /** Where to connect, used exactly as returned. */
  readonly wss_url: string;
  /** The feed the service selected. */
  readonly feed: Feed;
  /** The subprotocol that the handshake must request. */
  readonly subprotocol: string;
  /**
   * When the ticket expires, in ms on this process's monotonic clock (`performance.now()`). Not part of the response:
   * `requestTicket` adds the lifetime (`expires_at` minus the `Date` header) to the time of the request. Absent if
   * there's no `Date`, or if the lifetime isn't positive: a new ticket can't be expired, so the `Date` is wrong.
   */
  readonly deadlineMs?: number;
  /** Hides the ticket and its API key in text from the service. Not part of the response. */
  readonly redact?: (text: string) => string;
}

const secret = new t.Type<Secret, string>(
  'Secret',
  (u): u is Secret => u instanceof Secret,
  // io-ts reporters print this message instead of the value, which would be the ticket.
  (u, context) =>
    isCredential(u) ? t.success(new Secret(u)) : t.failure(u, context, `the ticket isn't valid${excessOf(u)}`),
  (a) => a.reveal(),
);

const fieldType = (name: string, isValid: (value: unknown) => boolean): t.Type<string> => {
  const is = (u: unknown): u is string => isValid(u);
  return new t.Type<string>(name, is, (u, context) => (is(u) ? t.success(u) : t.failure(u, context)), t.identity);
};

/**
 * Decodes the body of a ticket response (contract, section 2.1), wraps the secret and drops unknown fields.
 *
 * `wss_url` must be a `wss:` address (`ws:` only for a loopback host) without credentials or fragment; `subprotocol` a
 * token of RFC 9110; `expires_at` an RFC 3339 timestamp. `Ticket.encode` returns the original object, with the ticket
 * in plain text.
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
    expires_at: fieldType('Timestamp', ticketFields.expires_at),
    wss_url: fieldType('WssUrl', ticketFields.wss_url),
    feed: Feed,
    subprotocol: fieldType('Subprotocol', ticketFields.subprotocol),
  }),
  'Ticket',
);
