import type { Observable } from 'rxjs';
import type { Feed } from '../../protocol/feed.js';
import type { Payload } from '../sources/payload.js';
import type { AccountOptions, TradeFeedAccount } from './account.js';
import type { ServiceEvent } from './service-event.js';

/**
 * A Real-time Trade Feed Service that runs in this process, on loopback. {@link startTradeFeedService} starts one.
 *
 * @see the contract, all sections
 */
export interface TradeFeedService extends AsyncDisposable {
  /** The base address: `http://127.0.0.1:PORT`, or `https:` with the option `tls`; its own one, whatever `publicUrl` says. */
  readonly baseUrl: string;
  /**
   * What the service sees, as it happens: tickets, handshakes, closes, violations. Hot; completes with the shutdown, never
   * errors. No event holds a key or a ticket.
   */
  readonly events$: Observable<ServiceEvent>;
  /**
   * Makes an account, on the Free plan unless told otherwise.
   *
   * @throws TypeError when an option is not allowed
   */
  createAccount(options?: AccountOptions): TradeFeedAccount;
  /** Revokes a ticket (contract, section 3.1); gives false when it was not there to revoke: unknown, used, expired. */
  revokeTicket(ticket: string): boolean;
  /** Sets how many users may be live; those that are stay. */
  setCapacity(users: number): void;
  /** Lets the credential service fail (503 for each ticket request), or work again. */
  failCredentials(isFailing: boolean): void;
  /**
   * Sends a payload to every open connection of a feed: a text frame for a string, a binary frame for bytes. Nothing is kept:
   * a connection gets what is pushed while it is open.
   *
   * @throws TypeError when the feed or the payload is not allowed
   */
  push(feed: Feed, payload: Payload): void;
  /**
   * Lets the process end while the service listens, as `server.unref()` of Node does. Open connections, and sources with timers, still
   * keep the process running.
   */
  unref(): void;
  /**
   * Closes every connection with 1001 `server shutdown`, stops listening and releases everything; clients that do not answer
   * within `limits.shutdownTimeoutMs` are destroyed. Calling it again gives the same promise.
   */
  shutdown(): Promise<void>;
}
