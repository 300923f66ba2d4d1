import { TradeFeedError, tradeFeedEvents$, type FeedEvent, type TradeFeedOptions } from 'rx-trade-feed';
import type { Outcome } from '../support/feed.js';

/** Runs a feed until it stops. Returns the failure of each attempt. */
export const outcomesOf = (options: TradeFeedOptions): Promise<readonly Outcome[]> =>
  new Promise((resolve, reject) => {
    const outcomes: Outcome[] = [];
    let events: FeedEvent[] = [];
    let failure: TradeFeedError | undefined;
    tradeFeedEvents$('market', options).subscribe({
      next: (event) => {
        events.push(event);
        if (event.type === 'disconnected') failure = event.failure;
        if (event.type !== 'reconnecting' || failure === undefined) return;
        outcomes.push({ failure, goesOn: true, delayMs: event.delayMs, events });
        events = [];
      },
      error: (error: unknown) => {
        if (!(error instanceof TradeFeedError)) return reject(new Error('not a TradeFeedError', { cause: error }));
        resolve([...outcomes, lastOutcome(error, events)]);
      },
    });
  });

// `retries-exhausted` replaces the last failure, which is its cause.
const lastOutcome = (error: TradeFeedError, events: readonly FeedEvent[]): Outcome => {
  const isExhausted = error.code === 'retries-exhausted';
  const failure = isExhausted ? (error.cause as TradeFeedError) : error;
  return { failure, goesOn: isExhausted, delayMs: undefined, events };
};
