import { randomBytes } from 'node:crypto';
import type { Feed } from '../protocol/feed.js';
import type { Connection } from './connection.js';
import type { Plan, ServiceLimits } from './options.js';

/** An account in the service: a user of the contract. */
export interface AccountRecord {
  readonly id: string;
  plan: Plan;
  active: boolean;
  entitled: boolean;
  /** The fixed window of its ticket requests. */
  window?: FixedWindow;
  /** Its live connection: at most one, for all keys and both feeds (contract, section 8). */
  connection?: Connection | undefined;
}

/** The states of a ticket (contract, section 3.1). All but the first are final. */
type TicketState = 'issued' | 'consumed' | 'expired' | 'revoked';

/** A ticket in the service. */
export interface TicketRecord {
  readonly account: AccountRecord;
  readonly feed: Feed;
  /** When it expires, on the clock of the service. */
  readonly deadline: number;
  state: TicketState;
}

/** The tickets of a service. It has no timers: a ticket expires when it is next looked up. */
export class TicketStore {
  readonly #tickets = new Map<string, TicketRecord>();
  readonly #lifetimeMs: number;
  readonly #now: () => number;

  constructor(lifetimeMs: number, now: () => number) {
    this.#lifetimeMs = lifetimeMs;
    this.#now = now;
  }

  /** Creates a ticket, and returns the secret. */
  issue(account: AccountRecord, feed: Feed): string {
    // A ticket is stored until one lifetime after its deadline, so that a late handshake gets the exact refusal.
    for (const [old, { deadline }] of this.#tickets) {
      if (this.#now() < deadline + this.#lifetimeMs) break;
      this.#tickets.delete(old);
    }
    const ticket = `ticket_${randomBytes(24).toString('base64url')}`;
    this.#tickets.set(ticket, { account, feed, deadline: this.#now() + this.#lifetimeMs, state: 'issued' });
    return ticket;
  }

  /** Moves a ticket that is still issued to the next state. Returns the ticket as it was before. */
  move(ticket: string, next: 'consumed' | 'revoked'): TicketRecord | undefined {
    const record = this.#tickets.get(ticket);
    if (record === undefined) return undefined;
    if (record.state === 'issued' && this.#now() >= record.deadline) record.state = 'expired';
    const before = { ...record };
    if (record.state === 'issued') record.state = next;
    return before;
  }

  /** Revokes a ticket, or all tickets of an account. Returns those that were still issued. */
  revoke(which: string | AccountRecord): readonly TicketRecord[] {
    const tickets = [...this.#tickets].filter(([ticket, { account }]) => ticket === which || account === which);
    return tickets.flatMap(([ticket]) => {
      const before = this.move(ticket, 'revoked');
      return before?.state === 'issued' ? [before] : [];
    });
  }

  has(ticket: string): boolean {
    return this.#tickets.has(ticket);
  }

  clear(): void {
    this.#tickets.clear();
  }
}

/** The window of an account's ticket requests: when it began, and how many requests it has. */
export interface FixedWindow {
  readonly startedAt: number;
  readonly count: number;
}

/**
 * Counts a ticket request in the fixed window of its account (contract, sections 7.1 and 8): a window begins with the
 * first request after the previous one.
 *
 * @returns the window, and how long to wait if it was full: rounded up, so that it is over after the wait
 */
export const countInWindow = (
  window: FixedWindow | undefined,
  now: number,
  { windowMs, ticketsPerWindow }: Pick<ServiceLimits, 'windowMs' | 'ticketsPerWindow'>,
): { readonly window: FixedWindow; readonly retryAfterSeconds?: number } => {
  const current = window && now < window.startedAt + windowMs ? window : { startedAt: now, count: 0 };
  if (current.count < ticketsPerWindow) return { window: { ...current, count: current.count + 1 } };
  const waitMs = current.startedAt + windowMs - now;
  return { window: current, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
};
