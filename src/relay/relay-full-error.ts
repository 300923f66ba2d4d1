import { minRetryMs } from './retry-after.js';

/**
 * Why a relay refuses a client:
 *
 * - `full`: there are `maxClients`.
 * - `user`: this user has `maxClientsPerUser` streams.
 * - `closed`: the relay is closed.
 * - `authorize-timeout`: `authorize` took longer than `authorizeTimeoutMs`.
 * - `session-ended`: `relay.disconnect(id)` was called for this user while the client was being authorized.
 * - `topics`: there are `maxTopics`.
 */
export type RelayRefusal = 'full' | 'user' | 'closed' | 'authorize-timeout' | 'session-ended' | 'topics';

/**
 * The error for a client that a relay refuses for now: see {@link RelayRefusal}. Over HTTP it is a 503 with `Retry-After`.
 *
 * @example
 * ```ts
 * import { RelayFullError } from 'rx-trade-feed/relay';
 *
 * console.log(new RelayFullError('There are 1000 clients.').retryAfterMs); // 5000
 * ```
 */
export class RelayFullError extends Error {
  override readonly name = 'RelayFullError';
  readonly reason: RelayRefusal;
  /** When the client may retry, in ms. */
  readonly retryAfterMs: number;

  /**
   * @param message - for the log of your app; a client over HTTP receives a fixed text
   * @param reason - see {@link RelayRefusal}
   */
  constructor(message: string, reason: RelayRefusal = 'full') {
    super(message);
    this.reason = reason;
    // When a relay shuts down, another replica may accept the client at once.
    this.retryAfterMs = reason === 'closed' ? 1_000 : minRetryMs;
  }
}
