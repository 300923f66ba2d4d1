import { randomBytes } from 'node:crypto';
import type { Feed } from '../../protocol/feed.js';
import { nextTicketState, type TicketSignal, type TicketState } from './ticket-state.js';

/** What the service knows of a ticket. */
export interface TicketRecord {
  readonly account: string;
  readonly feed: Feed;
  /** When it expires, on the clock of the service. */
  readonly deadline: number;
  state: TicketState;
}

/** The tickets of a service, and the only place where their state changes. */
export interface TicketBook {
  /** Makes a ticket in the state `issued`; gives the secret. */
  issue(account: string, feed: Feed): string;
  /** Reserves a ticket for a handshake; gives the record and the state that it was in before. */
  reserve(ticket: string): { readonly record: TicketRecord; readonly was: TicketState } | undefined;
  /** Revokes a ticket; gives its record if it was still issued. */
  revoke(ticket: string): TicketRecord | undefined;
  /** Revokes all tickets of an account that are still issued; gives their records. */
  revokeOf(account: string): readonly TicketRecord[];
  has(ticket: string): boolean;
}

/** Makes an empty book. Time is a signal that is looked up when a ticket is: no timer waits for an expiry. */
export const createTicketBook = (lifetimeMs: number, now: () => number): TicketBook => {
  const records = new Map<string, TicketRecord>();

  const apply = (record: TicketRecord, signal: TicketSignal): TicketState => {
    if (now() >= record.deadline) record.state = nextTicketState(record.state, 'expire');
    const was = record.state;
    record.state = nextTicketState(was, signal);
    return was;
  };

  // A ticket is remembered for a second lifetime, so that a late handshake is told why; then it is forgotten.
  const forgetOld = (): void => {
    for (const [ticket, { deadline }] of records) {
      if (now() < deadline + lifetimeMs) return;
      records.delete(ticket);
    }
  };

  return {
    issue: (account, feed) => {
      forgetOld();
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
