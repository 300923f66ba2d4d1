import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { RelayMessage } from './relay-message.js';

/** Shortest wait of a client that is refused, in ms. Until then a load balancer can remove this replica. */
export const minRetryMs = 5_000;

/** Returns the header `Retry-After` of a 503 (RFC 9110, 10.2.3), in whole seconds: for a refusal, or for `connect-again` as the first message. */
export const retryAfterOf = (refusal: { readonly retryAfterMs: number } | Pick<RelayMessage, 'data'>): string => {
  const { retryAfterMs = minRetryMs } = 'data' in refusal ? (JSON.parse(refusal.data) as TradeFeedError) : refusal;
  return String(Math.ceil(retryAfterMs / 1_000));
};
