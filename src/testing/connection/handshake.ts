import type { IncomingMessage } from 'node:http';
import type { Feed } from '../../protocol/feed.js';
import { firstRefusal, type Refusal } from '../http/refusal.js';
import { streamPath } from '../http/route-rules.js';
import type { AccountRecord } from '../service/account.js';
import type { ServiceState } from '../service/service-state.js';
import type { TicketRecord } from '../ticket/ticket-store.js';
import { handshakeRules } from './handshake-rules.js';

/** The result of a handshake: a refusal, or the account and the feed of the ticket. */
export type Admission =
  | { readonly refusal: Refusal; readonly ticket: TicketRecord | undefined }
  | { readonly account: AccountRecord; readonly feed: Feed };

/**
 * Checks a handshake (contract, sections 4.2 and 7.2).
 *
 * Reserves the ticket before the rules are checked, so the ticket cannot be used again, even after a refusal.
 */
export const admit = (state: ServiceState, { url, headers }: Pick<IncomingMessage, 'url' | 'headers'>): Admission => {
  const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  const reserved = bearer === undefined ? undefined : state.tickets.reserve(bearer);
  const ticket = reserved?.record;
  const refusal = firstRefusal(handshakeRules, {
    hasBearer: bearer !== undefined,
    ticket: reserved?.was,
    isExactAddress: url === streamPath,
    requested: requestedSubprotocols(headers['sec-websocket-protocol']),
    subprotocol: ticket && state.settings.subprotocols[ticket.feed],
    isReplacing: ticket !== undefined && state.connections.of(ticket.account) !== undefined,
    liveUsers: state.connections.liveUsers,
    capacity: state.capacity,
  });
  if (refusal !== undefined) return { refusal, ticket };
  // No rule applies, so the ticket and its account are known.
  const { account, feed } = ticket as TicketRecord;
  return { account: state.accounts.get(account) as AccountRecord, feed };
};

/** Reads `Sec-WebSocket-Protocol` (RFC 6455, section 4.2.1). Returns `undefined` without the header. */
export const requestedSubprotocols = (header: string | undefined): readonly string[] | undefined =>
  header?.split(',').map((subprotocol) => subprotocol.trim());
