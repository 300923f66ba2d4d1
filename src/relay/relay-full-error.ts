/** What a client is answered that a relay has no room for: how many there are is not for everybody to read. */
export const noRoom = 'The relay has no room. Come back later.';

/**
 * The error of a client that a relay has no room for: there are `maxClients`, or it was closed. Over HTTP it is a 503.
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
  /** When it makes sense to come back, in ms. */
  readonly retryAfterMs = 5_000;
}
