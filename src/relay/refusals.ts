import type { RelayFailureCode } from '../protocol/failures/meanings.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { RelayMessage } from './relay-message.js';

/** Shortest wait of a refused client, in ms. It gives a load balancer time to remove this replica. */
export const minRetryMs = 5_000;

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
 * Tells a client that a relay can't take it right now: see {@link RelayRefusal}. Over HTTP it's a 503 with
 * `Retry-After`.
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
    // While a relay shuts down, another replica can usually take the client at once.
    this.retryAfterMs = reason === 'closed' ? 1_000 : minRetryMs;
  }
}

/**
 * Rejects a client because `authorize` refused it (403), or because `authorize` or `select` failed (500). The client
 * receives the message, but not the cause.
 */
export class NotAuthorizedError extends Error {
  override readonly name = 'NotAuthorizedError';
  readonly status: 403 | 500;

  constructor(status: 403 | 500, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

const relayFull = (message: string): { readonly code: RelayFailureCode; readonly message: string } => {
  return { code: 'relay-full', message };
};

/** The body of each 503, with the code that pages look for. It's public, so it doesn't count the clients. */
export const refusals: Readonly<Record<RelayRefusal, ReturnType<typeof relayFull>>> = {
  full: relayFull('The relay has no room. Retry later.'),
  topics: relayFull('The relay has no room. Retry later.'),
  user: relayFull('This user has as many streams as the relay allows. Close one, or retry later.'),
  closed: relayFull('The relay is shutting down. Retry later.'),
  'session-ended': relayFull('The session of this user has just ended. Retry later.'),
  'authorize-timeout': { code: 'relay-authorize-timeout', message: 'The authorization took too long. Retry later.' },
};

/** The text of a 405. */
export const methodRefused = 'A relay only accepts GET.';

/** The text of a 400 for a pipelined request. */
export const connectionBusy =
  'This connection is still sending another response. Wait until it ends, or open another one.';

/** Returns the `Retry-After` of a 503 (RFC 9110, 10.2.3): for a refusal, or for an initial `connect-again`. */
export const retryAfterOf = (refusal: { readonly retryAfterMs: number } | Pick<RelayMessage, 'data'>): string => {
  const { retryAfterMs = minRetryMs } = 'data' in refusal ? (JSON.parse(refusal.data) as TradeFeedError) : refusal;
  return String(Math.ceil(retryAfterMs / 1_000));
};
