import type { Observable } from 'rxjs';
import type { Feed } from '../../protocol/feed.js';
import type { Payload } from '../connection/encode-frame.js';
import type { AccountOptions, TradeFeedAccount } from './account.js';
import type { ServiceEvent } from './service-event.js';

/**
 * A Real-time Trade Feed Service that runs in this process, on loopback. {@link startTradeFeedService} starts one.
 *
 * @see the contract, all sections
 */
export interface TradeFeedService extends AsyncDisposable {
  /** The base address: `http://127.0.0.1:PORT`, or `https:` with the option `tls`. `publicUrl` does not change it. */
  readonly baseUrl: string;
  /**
   * Emits the events of the service: tickets, handshakes, closes, violations. Hot; completes at the shutdown, never errors. No event contains a key or
   * a ticket.
   */
  readonly events$: Observable<ServiceEvent>;
  /**
   * Creates an account, by default on the Free plan.
   *
   * @throws TypeError when an option is not allowed
   */
  createAccount(options?: AccountOptions): TradeFeedAccount;
  /** Revokes a ticket (contract, section 3.1). Returns `false` if the ticket is unknown, used, expired or already revoked. */
  revokeTicket(ticket: string): boolean;
  /** Sets the maximum number of live users. Open connections stay open. */
  setCapacity(users: number): void;
  /** Makes the credential service fail (503 for each ticket request), or work again. */
  failCredentials(isFailing: boolean): void;
  /**
   * Sends a payload to every open connection of a feed: a text frame for a string, a binary frame for bytes. The service stores no payloads: a connection
   * receives only payloads that are pushed while it is open.
   *
   * @throws TypeError when the feed or the payload is not allowed
   */
  push(feed: Feed, payload: Payload): void;
  /**
   * Allows the process to exit while the service listens, as `server.unref()` of Node does. Open connections and sources with timers still keep the
   * process running.
   */
  unref(): void;
  /**
   * Closes every connection with 1001 `server shutdown`, stops listening, and releases all resources. Sockets of clients that do not answer within
   * `limits.shutdownTimeoutMs` are destroyed. Further calls return the same promise.
   */
  shutdown(): Promise<void>;
}
