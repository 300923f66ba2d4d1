/**
 * Why a relay has no place for a client: `full`: there are `maxClients`; `user`: this user has `maxClientsPerUser` streams; `closed`: the
 * relay is closed; `authorize-timeout`: `authorize` gave no answer in time; `session-ended`: `relay.disconnect(id)` was called for this user
 * while the client was being authorized; `topics`: there are `maxTopics`.
 */
export type RelayRefusal = 'full' | 'user' | 'closed' | 'authorize-timeout' | 'session-ended' | 'topics';

/**
 * The error of a client that a relay has no place for. Over HTTP it is a 503 with `Retry-After`.
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
  /** Why there is none. */
  readonly reason: RelayRefusal;
  /** When it makes sense to come back, in ms. */
  readonly retryAfterMs: number;

  /**
   * @param message - what the client is told
   * @param reason - see {@link RelayRefusal}
   */
  constructor(message: string, reason: RelayRefusal = 'full') {
    super(message);
    this.reason = reason;
    // Another replica may have a place for a client of a relay that shuts down.
    this.retryAfterMs = reason === 'closed' ? 1_000 : 5_000;
  }
}
