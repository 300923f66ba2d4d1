import { unescape } from 'node:querystring';
import { BehaviorSubject, Subject } from 'rxjs';
import type { Connection } from './connection.js';
import type { Endpoints, ServiceSettings } from './options.js';
import type { ServiceEvent } from './service.js';
import { type AccountRecord, type TicketRecord, TicketStore } from './tickets.js';

type Untimed<E> = E extends ServiceEvent ? Omit<E, 'at'> : never;

/** The state of one service, which all endpoints use. */
export class ServiceState {
  readonly settings: ServiceSettings;
  readonly events = new Subject<ServiceEvent>();
  /** The accounts by API key. An account may have several keys, which are stored only here. */
  readonly keys = new Map<string, AccountRecord>();
  readonly tickets: TicketStore;
  /** The open connections, one for each account that has one. */
  readonly connections = new Set<Connection>();
  readonly endpoints: Endpoints = { ticket: 'normal', handshake: 'normal' };
  /** Whether the service is stalled. Emits again at a shutdown, which ends what waits. */
  readonly stalled$ = new BehaviorSubject(false);
  capacity: number;
  credentialsFail = false;
  isShuttingDown = false;
  /** The `wss_url` of tickets. */
  wssUrl = '';

  constructor(settings: ServiceSettings) {
    const { limits, scheduler } = settings;
    this.settings = settings;
    this.capacity = limits.capacity;
    this.tickets = new TicketStore(limits.ticketLifetimeMs, () => scheduler.now());
  }

  /** Emits an event, with the time added. */
  emit(event: Untimed<ServiceEvent>): void {
    this.events.next({ at: Math.trunc(this.settings.scheduler.now()), ...event });
  }

  /** Revokes a ticket, or all tickets of an account. */
  revoke(which: string | AccountRecord): readonly TicketRecord[] {
    const revoked = this.tickets.revoke(which);
    for (const { account, feed } of revoked) this.emit({ type: 'ticket-revoked', account: account.id, feed });
    return revoked;
  }

  /** Reports a request target that contains an API key or a ticket (contract, sections 4.1 and 4.2). */
  checkTarget(target: string): void {
    const pieces = target.split(/[/?&=;]/).map((piece) => unescape(piece));
    if (pieces.some((piece) => this.keys.has(piece) || this.tickets.has(piece)))
      this.emit({ type: 'violation', rule: 'credential-in-url' });
  }
}
