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

/** How an attempt ended: the failure, whether the feed reconnects, and the events since the previous attempt. */
export interface Outcome {
  readonly failure: TradeFeedError;
  readonly goesOn: boolean;
  readonly delayMs: number | undefined;
  readonly events: readonly FeedEvent[];
}

/** Runs a feed until it stops or has made a number of attempts. Returns how each of them ended. */
export const outcomesOf = (options: TradeFeedOptions, attempts = Infinity): Promise<readonly Outcome[]> =>
  new Promise((resolve, reject) => {
    const outcomes: Outcome[] = [];
    let events: FeedEvent[] = [];
    let failure: TradeFeedError | undefined;
    const subscription: Subscription = tradeFeedEvents$('market', options).subscribe({
      next: (event) => {
        events.push(event);
        if (event.type === 'disconnected') failure = event.failure;
        if (event.type !== 'reconnecting' || failure === undefined) return;
        outcomes.push({ failure, goesOn: true, delayMs: event.delayMs, events });
        events = [];
        if (outcomes.length < attempts) return;
        resolve(outcomes);
        queueMicrotask(() => subscription.unsubscribe());
      },
      error: (error: unknown) => {
        if (!(error instanceof TradeFeedError)) return reject(new Error('not a TradeFeedError', { cause: error }));
        // `retries-exhausted` wraps the last failure as its cause.
        const goesOn = attempts === Infinity && error.code === 'retries-exhausted';
        const last = goesOn ? (error.cause as TradeFeedError) : error;
        resolve([...outcomes, { failure: last, goesOn, delayMs: undefined, events }]);
      },
    });
  });

/** Runs a feed until it stops or reconnects. */
export const outcomeOf = async (options: TradeFeedOptions): Promise<Outcome> =>
  (await outcomesOf(options, 1))[0] as Outcome;

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
