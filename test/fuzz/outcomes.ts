import { TradeFeedError, tradeFeedEvents$, type FeedEvent, type TradeFeedOptions } from 'rx-trade-feed';
import type { Outcome } from '../support/feed.js';

/** Runs a feed until it gives up; gives how each of its attempts ended. */
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

// A feed whose reconnects are used up would have gone on after the last failure.
const lastOutcome = (error: TradeFeedError, events: readonly FeedEvent[]): Outcome => {
  const isExhausted = error.code === 'retries-exhausted';
  const failure = isExhausted ? (error.cause as TradeFeedError) : error;
  return { failure, goesOn: isExhausted, delayMs: undefined, events };
};
