import { randomBytes } from 'node:crypto';
import type { Feed } from '../../protocol/feed.js';
import { nextTicketState, type TicketSignal, type TicketState } from './ticket-state.js';

/** The data of a ticket in the service. */
export interface TicketRecord {
  readonly account: string;
  readonly feed: Feed;
  /** When the ticket expires, on the clock of the service. */
  readonly deadline: number;
  state: TicketState;
}

/** The tickets of a service. Only this store changes their state. */
export interface TicketStore {
  /** Creates a ticket in the state `issued`, and returns the secret. */
  issue(account: string, feed: Feed): string;
  /** Reserves a ticket for a handshake. Returns the record and the state before. */
  reserve(ticket: string): { readonly record: TicketRecord; readonly was: TicketState } | undefined;
  /** Revokes a ticket. Returns the record if the ticket was still issued. */
  revoke(ticket: string): TicketRecord | undefined;
  /** Revokes all tickets of an account that are still issued. Returns their records. */
  revokeOf(account: string): readonly TicketRecord[];
  has(ticket: string): boolean;
}

/** Creates an empty store. It has no timers: a ticket expires when it is next looked up. */
export const createTicketStore = (lifetimeMs: number, now: () => number): TicketStore => {
  const records = new Map<string, TicketRecord>();

  const apply = (record: TicketRecord, signal: TicketSignal): TicketState => {
    if (now() >= record.deadline) record.state = nextTicketState(record.state, 'expire');
    const was = record.state;
    record.state = nextTicketState(was, signal);
    return was;
  };

  // A ticket is stored until one lifetime after its deadline, so that a late handshake gets the exact refusal.
  const removeOld = (): void => {
    for (const [ticket, { deadline }] of records) {
      if (now() < deadline + lifetimeMs) return;
      records.delete(ticket);
    }
  };

  return {
    issue: (account, feed) => {
      removeOld();
      const ticket = `ticket_${randomBytes(24).toString('base64url')}`;
      records.set(ticket, { account, feed, deadline: now() + lifetimeMs, state: 'issued' });
      return ticket;
    },
    reserve: (ticket) => {
      const record = records.get(ticket);
      return record && { record, was: apply(record, 'reserve') };
    },
    revoke: (ticket) => {
      const record = records.get(ticket);
      return record && apply(record, 'revoke') === 'issued' ? record : undefined;
    },
    revokeOf: (account) =>
      [...records.values()].filter((record) => record.account === account && apply(record, 'revoke') === 'issued'),
    has: (ticket) => records.has(ticket),
  };
};
