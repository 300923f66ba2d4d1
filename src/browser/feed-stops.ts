import { copyFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { ConnectionEnd } from './connection-facts.js';

/** The failure of an end, and the number of stops of the feed in a row. */
export interface FeedStops {
  readonly stops: number;
  readonly failure: TradeFeedError;
}

/**
 * Counts the stops of the feed in a row. Changes the verdict of a stop to `backoff` until there are `maxFeedStops`. An `opened` restarts the count.
 *
 * A relay that is replaced, or whose account is used elsewhere for a moment, sends a stop to all pages at once. They retry instead of stopping.
 *
 * @param maxFeedStops - the number of stops in a row that ends the feed
 * @param before - the stops before this end
 */
export const afterEnd = (
  maxFeedStops: number,
  before: number,
  { failure, isOfFeed, hasOpened }: ConnectionEnd,
): FeedStops => {
  const inRow = hasOpened ? 0 : before;
  if (!isOfFeed || failure.verdict !== 'stop') return { stops: inRow, failure };
  const stops = inRow + 1;
  return { stops, failure: stops < maxFeedStops ? copyFailure(failure, { verdict: 'backoff' }) : failure };
};
