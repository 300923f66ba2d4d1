import { createFailure } from './meaning.js';
import { relayReports } from './relay-meanings.js';
import { TradeFeedError } from './trade-feed-error.js';

/**
 * Returns the error of a feed as a failure. An error that is not a `TradeFeedError` was thrown by a function of the application or by a
 * custom source, and becomes the cause of `relay-source-failed`.
 */
export const failureOf = (error: unknown): TradeFeedError =>
  error instanceof TradeFeedError ? error : createFailure(relayReports.sourceFailed, { stage: 'stream', cause: error });
