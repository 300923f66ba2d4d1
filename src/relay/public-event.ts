import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { relayReports } from '../protocol/failures/relay-meanings.js';

/** Makes the event that pages receive: its failure has no text but the fixed words of the library. */
export const publicEvent = <E extends object>(event: E): E =>
  'failure' in event ? { ...event, failure: publicFailure(event.failure) } : event;

/** Makes the failure that pages receive. An error that is not a failure of the feed may have any text, so they receive none of it. */
export const publicFailure = (error: unknown): TradeFeedError =>
  error instanceof TradeFeedError ? error.toPublic() : createFailure(relayReports.sourceFailed, { stage: 'stream' });
