import { lastValueFrom, type Observable, type Subscription, takeWhile, toArray } from 'rxjs';
import type { FeedEvent, TradeFeedError, TradeFeedOptions } from '../../src/index.js';
import { tradeFeedEvents$ } from '../../src/index.js';

export const plantedKey = 'planted-api-key-7f3a';

/** Returns options for a test service: a planted key and short delays. */
export const optionsFor = (
  { baseUrl }: { readonly baseUrl: string },
  options: TradeFeedOptions = {},
): TradeFeedOptions => ({
  baseUrl,
  apiKey: plantedKey,
  ...options,
  backoff: { initialDelayMs: 1, maxDelayMs: 5, ...options.backoff },
});

/** How the first attempt ended: the failure, whether the feed reconnects, and the events so far. */
export interface Outcome {
  readonly failure: TradeFeedError;
  readonly goesOn: boolean;
  readonly delayMs: number | undefined;
  readonly events: readonly FeedEvent[];
}

/** Runs a feed until it stops or reconnects. */
export const outcomeOf = async (options: TradeFeedOptions): Promise<Outcome> => {
  const events: FeedEvent[] = [];
  return new Promise((resolve) => {
    const subscription: Subscription = tradeFeedEvents$('market', options).subscribe({
      next: (event) => {
        events.push(event);
        if (event.type !== 'reconnecting') return;
        const disconnected = events.find(({ type }) => type === 'disconnected') as Extract<
          FeedEvent,
          { type: 'disconnected' }
        >;
        resolve({ failure: disconnected.failure, goesOn: true, delayMs: event.delayMs, events });
        queueMicrotask(() => subscription.unsubscribe());
      },
      error: (failure: TradeFeedError) => resolve({ failure, goesOn: false, delayMs: undefined, events }),
    });
  });
};

/** Collects values up to the first one that satisfies the predicate, inclusive. */
export const until = <T>(source$: Observable<T>, last: (value: T) => boolean): Promise<T[]> =>
  lastValueFrom(
    source$.pipe(
      takeWhile((value) => !last(value), true),
      toArray(),
    ),
  );

/** Resolves when a socket is closed. */
export const closed = async (socket: { readonly closed: boolean } & NodeJS.EventEmitter): Promise<void> => {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
};
