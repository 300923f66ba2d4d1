import { lastValueFrom, type Observable, type Subscription, takeWhile, toArray } from 'rxjs';
import { type FeedEvent, TradeFeedError, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';

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

/** How the first attempt ended: the failure, whether the feed reconnects, and the events. */
export interface Outcome {
  readonly failure: TradeFeedError;
  readonly goesOn: boolean;
  readonly delayMs: number | undefined;
  readonly events: readonly FeedEvent[];
}

/** Runs a feed until it stops or reconnects. */
export const outcomeOf = (options: TradeFeedOptions): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const events: FeedEvent[] = [];
    let failure: TradeFeedError | undefined;
    const subscription: Subscription = tradeFeedEvents$('market', options).subscribe({
      next: (event) => {
        events.push(event);
        if (event.type === 'disconnected') failure = event.failure;
        if (event.type !== 'reconnecting' || failure === undefined) return;
        resolve({ failure, goesOn: true, delayMs: event.delayMs, events: [...events] });
        queueMicrotask(() => subscription.unsubscribe());
      },
      error: (error: unknown) => {
        if (!(error instanceof TradeFeedError)) return reject(new Error('not a TradeFeedError', { cause: error }));
        resolve({ failure: error, goesOn: false, delayMs: undefined, events });
      },
    });
  });

/** Collects values up to and including the first one that satisfies the predicate. */
export const until = <T>(source$: Observable<T>, last: (value: T) => boolean): Promise<T[]> =>
  lastValueFrom(
    source$.pipe(
      takeWhile((value) => !last(value), true),
      toArray(),
    ),
  );

export const closed = async (socket: { readonly closed: boolean } & NodeJS.EventEmitter): Promise<void> => {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
};
