import type { RefusalRule } from '../http/refusal.js';
import type { TicketState } from '../ticket/ticket-state.js';

/** What a handshake is judged by, once it is a WebSocket handshake at all. */
export interface HandshakeFacts {
  /** Whether there is an `Authorization: Bearer` header. */
  readonly hasBearer: boolean;
  /** The state of its ticket before this handshake reserved it; `undefined` when the service knows no such ticket. */
  readonly ticket: TicketState | undefined;
  /** Whether the request target is the path of `wss_url`, with nothing added. */
  readonly isExactAddress: boolean;
  /** The subprotocols that were asked for; `undefined` when the header is missing. */
  readonly requested: readonly string[] | undefined;
  /** The subprotocol of the ticket's feed. */
  readonly subprotocol: string | undefined;
  /** Whether the account has a live connection, which this one would replace. */
  readonly isReplacing: boolean;
  readonly liveUsers: number;
  readonly capacity: number;
}

const unauthorized = { status: 401, headers: { 'WWW-Authenticate': 'Bearer' } } as const;

/**
 * The refusals of the handshake (contract, section 7.2), in the order in which they are looked at.
 *
 * The ticket comes first: without one the feed is not known. A feed shows only in the address, so an address with anything
 * added to it (`/ws?feed=raw`) is the 400 of a feed that does not match. A subprotocol that is asked for must be the ticket's,
 * and no other beside it; to ask for none is not refused, for 7.2 speaks of "an explicitly requested subprotocol".
 */
export const handshakeRules: readonly RefusalRule<HandshakeFacts>[] = [
  {
    ...unauthorized,
    code: 'ticket-missing',
    message: 'The Authorization header holds no Bearer ticket.',
    when: ({ hasBearer }) => !hasBearer,
  },
  {
    ...unauthorized,
    code: 'ticket-unknown',
    message: 'The ticket is not known.',
    when: ({ ticket }) => ticket === undefined,
  },
  {
    ...unauthorized,
    code: 'ticket-consumed',
    message: 'The ticket was used before.',
    when: ({ ticket }) => ticket === 'consumed',
  },
  {
    ...unauthorized,
    code: 'ticket-expired',
    message: 'The ticket has expired.',
    when: ({ ticket }) => ticket === 'expired',
  },
  {
    ...unauthorized,
    code: 'ticket-revoked',
    message: 'The ticket was revoked.',
    when: ({ ticket }) => ticket === 'revoked',
  },
  {
    status: 400,
    code: 'address-mismatch',
    message: 'The address is not the wss_url of the ticket.',
    when: ({ isExactAddress }) => !isExactAddress,
  },
  {
    status: 400,
    code: 'subprotocol-mismatch',
    message: 'The requested subprotocol is not the one of the ticket.',
    when: ({ requested, subprotocol }) =>
      requested !== undefined && (requested.length !== 1 || requested[0] !== subprotocol),
  },
  {
    status: 503,
    code: 'capacity-full',
    message: 'There is no room for another user.',
    when: ({ isReplacing, liveUsers, capacity }) => !isReplacing && liveUsers >= capacity,
  },
];
