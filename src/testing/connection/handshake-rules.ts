import type { RefusalRule } from '../http/refusal.js';
import type { TicketState } from '../ticket/ticket-state.js';

/** The facts that the handshake rules check, for a valid WebSocket handshake. */
export interface HandshakeFacts {
  /** Whether the request has an `Authorization: Bearer` header. */
  readonly hasBearer: boolean;
  /** The state of the ticket before this handshake reserved it; `undefined` for an unknown ticket. */
  readonly ticket: TicketState | undefined;
  /** Whether the request target is exactly the path of `wss_url`. */
  readonly isExactAddress: boolean;
  /** The requested subprotocols; `undefined` if the header is missing. */
  readonly requested: readonly string[] | undefined;
  /** The subprotocol of the ticket's feed. */
  readonly subprotocol: string | undefined;
  /** Whether the account has a live connection, which the new one would replace. */
  readonly isReplacing: boolean;
  readonly liveUsers: number;
  readonly capacity: number;
}

const unauthorized = { status: 401, headers: { 'WWW-Authenticate': 'Bearer' } } as const;

/**
 * The refusals of the handshake (contract, section 7.2), in the order of the checks.
 *
 * The ticket is checked first, because it determines the feed. Only the address could request another feed, so an address with any addition
 * (`/ws?feed=raw`) gets the 400 for a feed that does not match. If subprotocols are requested, the subprotocol of the ticket must be the only one. A request
 * without a subprotocol is accepted, because 7.2 refuses "an explicitly requested subprotocol".
 */
export const handshakeRules: readonly RefusalRule<HandshakeFacts>[] = [
  {
    ...unauthorized,
    code: 'ticket-missing',
    message: 'The Authorization header has no Bearer ticket.',
    when: ({ hasBearer }) => !hasBearer,
  },
  {
    ...unauthorized,
    code: 'ticket-unknown',
    message: 'The ticket is unknown.',
    when: ({ ticket }) => ticket === undefined,
  },
  {
    ...unauthorized,
    code: 'ticket-consumed',
    message: 'The ticket was already used.',
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
    message: 'The requested subprotocol is not that of the ticket.',
    when: ({ requested, subprotocol }) =>
      requested !== undefined && (requested.length !== 1 || requested[0] !== subprotocol),
  },
  {
    status: 503,
    code: 'capacity-full',
    message: 'The service is full: its maximum number of users is connected.',
    when: ({ isReplacing, liveUsers, capacity }) => !isReplacing && liveUsers >= capacity,
  },
];
