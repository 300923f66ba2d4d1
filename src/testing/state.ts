import { randomBytes } from 'node:crypto';
import { unescape } from 'node:querystring';
import { BehaviorSubject, Subject } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { Connection, Message } from './connection.js';
import type { DelayLine } from './delay-line.js';
import type { Endpoints, Plan, ServiceLimits, ServiceSettings, WaitingFrames } from './service-options.js';
import type { ServiceEvent } from './service.js';

type Untimed<E> = E extends ServiceEvent ? Omit<E, 'at'> : never;

/** The state of one service, shared by its endpoints. */
export class ServiceState {
  readonly settings: ServiceSettings;
  readonly events = new Subject<ServiceEvent>();
  readonly accounts: AccountRecord[] = [];
  /** The accounts by API key. An account may have several keys, and nothing else stores them. */
  readonly keys = new Map<string, AccountRecord>();
  readonly tickets: TicketStore;
  /** The open connections, one for each account that has one. */
  readonly connections = new Set<Connection>();
  readonly endpoints: Endpoints = { ticket: 'normal', handshake: 'normal' };
  /** Whether the service is stalled. The shutdown emits once more, to end whatever is still waiting. */
  readonly stalled$ = new BehaviorSubject(false);
  capacity: number;
  credentialsFail = false;
  waitingFrames: WaitingFrames = 'drop';
  isShuttingDown = false;
  wssUrl = '';

  constructor(settings: ServiceSettings) {
    const { limits, scheduler } = settings;
    this.settings = settings;
    this.capacity = limits.capacity;
    this.tickets = new TicketStore(limits.ticketLifetimeMs, () => scheduler.now());
  }

  emit(event: Untimed<ServiceEvent>): void {
    this.events.next({ at: Math.trunc(this.settings.scheduler.now()), ...event });
  }

  /** Sends a message to the live connections of a feed, on the Free plan after its delay. */
  send(feed: Feed, message: Message): void {
    for (const { plan, connection, delayLine } of this.accounts) {
      const isDelayed = plan === 'free' && this.settings.limits.freeDelayMs > 0;
      const isLive = connection?.feed === feed;
      if (isDelayed && (isLive || this.waitingFrames === 'send-when-due')) delayLine.push(feed, message);
      else if (isLive) connection.send(message);
    }
  }

  /** Opens the live connection of an account. Returns the one that it replaces. */
  connect(account: AccountRecord, connection: Connection): Connection | undefined {
    const earlier = account.connection;
    if (earlier) this.connections.delete(earlier);
    account.connection = connection;
    this.connections.add(connection);
    if (earlier && this.waitingFrames === 'drop') account.delayLine.clear();
    if (this.waitingFrames === 'send-on-reconnect') account.delayLine.flush();
    return earlier;
  }

  /** Ends the live connection of an account, unless another one has replaced it. */
  disconnect(account: AccountRecord, connection: Connection): void {
    this.connections.delete(connection);
    if (account.connection !== connection) return;
    account.connection = undefined;
    if (this.waitingFrames === 'drop') account.delayLine.clear();
    if (this.waitingFrames === 'send-on-reconnect') account.delayLine.hold();
  }

  revoke(which: string | AccountRecord): readonly TicketRecord[] {
    const revoked = this.tickets.revoke(which);
    for (const { account, feed } of revoked) this.emit({ type: 'ticket-revoked', account: account.id, feed });
    return revoked;
  }

  /** Reports a request whose URL contains an API key or a ticket (contract, sections 4.1 and 4.2). */
  checkTarget(target: string): void {
    const pieces = target.split(/[/?&=;]/).map((piece) => unescape(piece));
    if (pieces.some((piece) => this.keys.has(piece) || this.tickets.has(piece)))
      this.emit({ type: 'violation', rule: 'credential-in-url' });
  }
}

export interface AccountRecord {
  readonly id: string;
  plan: Plan;
  active: boolean;
  entitled: boolean;
  window?: FixedWindow;
  /** Its live connection: at most one, for all keys and both feeds (contract, section 8). */
  connection: Connection | undefined;
  /** The frames that wait for the Free plan's delay. */
  readonly delayLine: DelayLine;
}

/** The states of a ticket (contract, section 3.1). All but the first are final. */
type TicketState = 'issued' | 'consumed' | 'expired' | 'revoked';

export interface TicketRecord {
  readonly account: AccountRecord;
  readonly feed: Feed;
  readonly deadline: number;
  state: TicketState;
}

/** The tickets of a service. Uses no timers: a ticket expires when it's next looked up. */
class TicketStore {
  readonly #tickets = new Map<string, TicketRecord>();
  readonly #lifetimeMs: number;
  readonly #now: () => number;

  constructor(lifetimeMs: number, now: () => number) {
    this.#lifetimeMs = lifetimeMs;
    this.#now = now;
  }

  issue(account: AccountRecord, feed: Feed): string {
    // Keeps tickets for one more lifetime after the deadline, so that a late handshake gets the exact refusal.
    for (const [old, { deadline }] of this.#tickets) {
      if (this.#now() < deadline + this.#lifetimeMs) break;
      this.#tickets.delete(old);
    }
    const ticket = `ticket_${randomBytes(24).toString('base64url')}`;
    this.#tickets.set(ticket, { account, feed, deadline: this.#now() + this.#lifetimeMs, state: 'issued' });
    return ticket;
  }

  /** Moves a ticket that's still `issued` to the next state. Returns its record from before. */
  move(ticket: string, next: 'consumed' | 'revoked'): TicketRecord | undefined {
    const record = this.#tickets.get(ticket);
    if (record === undefined) return undefined;
    if (record.state === 'issued' && this.#now() >= record.deadline) record.state = 'expired';
    const before = { ...record };
    if (record.state === 'issued') record.state = next;
    return before;
  }

  /** Revokes a ticket, or all tickets of an account. Returns those that were still `issued`. */
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

export interface FixedWindow {
  readonly startedAt: number;
  readonly count: number;
}

/**
 * Counts a ticket request in its account's fixed window (contract, sections 7.1 and 8). A window starts with the first
 * request after the previous one.
 *
 * @returns the window, and if it was full, how long to wait: rounded up, so that it's over by then
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
