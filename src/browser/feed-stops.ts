import { map, type OperatorFunction, pipe, scan } from 'rxjs';
import { copyFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Ended } from './attempt.js';

/** A failure to act on, and how often in a row the relay has said that the feed was stopped. */
interface Counted {
  readonly stops: number;
  readonly failure: TradeFeedError;
}

/**
 * Counts how often in a row a relay says that its feed has stopped. An `opened` begins the count again.
 *
 * A relay that is replaced, or whose account is used elsewhere for a moment, says so to all pages at once. Each comes back instead of stopping.
 *
 * @param maxFeedStops - how many times in a row end the feed
 * @param before - the stops before this end
 */
export const afterEnd = (maxFeedStops: number, before: number, { failure, isOfFeed, hasOpened }: Ended): Counted => {
  const inRow = hasOpened ? 0 : before;
  if (!isOfFeed || failure.verdict !== 'stop') return { stops: inRow, failure };
  const stops = inRow + 1;
  return { stops, failure: stops < maxFeedStops ? copyFailure(failure, { verdict: 'backoff' }) : failure };
};

/** Emits the failure of each end of a connection: with the verdict `stop` for the feed after `maxFeedStops` in a row alone. */
export const feedStops = (maxFeedStops: number): OperatorFunction<Ended, TradeFeedError> =>
  pipe(
    scan<Ended, Counted, undefined>((last, ended) => afterEnd(maxFeedStops, last?.stops ?? 0, ended), undefined),
    map(({ failure }) => failure),
  );
