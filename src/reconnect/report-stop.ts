import type { Stopped } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';

/**
 * Reports the error of a feed as `stopped`, the last event before it.
 *
 * An exception of the caller's own code (an option that is a function, an operator) is no failure of the feed, and is not reported.
 */
export const reportStop =
  (emit: (event: Stopped) => void) =>
  (failure: unknown): void => {
    if (failure instanceof TradeFeedError) emit({ type: 'stopped', at: Date.now(), failure });
  };
