import { noop, Observable, pipe, tap } from 'rxjs';
import type { Disconnected, LifecycleEvent, Reconnecting } from '../protocol/event.js';
import { failureOf, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { afterEvent, type FeedState, noFeed } from '../protocol/feed-state.js';
import { backoff, type BackoffOptions, type Reconnect } from './backoff.js';

export type Emit = (event: LifecycleEvent) => void;

export interface Lifecycle extends Reports {
  readonly emit: Emit;
}

interface Reports {
  /** Receives the events while reconnecting. */
  readonly emit: (event: Disconnected | Reconnecting) => void;
  /** Receives the error that ends the feed. */
  readonly stop: (error: unknown) => void;
  /** Returns the stream's time, in epoch ms. */
  readonly now: () => number;
}

/**
 * The one place that adds events: a `gap` after an `opened` that ends an outage, `stopped` before the error. Observers
 * get the same objects as the subscriber, and get them first. They also see `stopped` if the caller's code threw.
 */
export const createLifecycle = (
  deliver: Emit,
  observe: (event: LifecycleEvent, state: FeedState) => void = noop,
): Lifecycle => {
  let state = noFeed;
  const fold = (event: LifecycleEvent): LifecycleEvent => {
    state = afterEvent(state, event, undefined);
    observe(event, state);
    return event;
  };
  return {
    emit: (event) => {
      fold(event);
      const gap = state.unconfirmed && fold(state.unconfirmed);
      deliver(event);
      if (gap) deliver(gap);
    },
    stop: (error) => {
      const stopped = fold({ type: 'stopped', at: Date.now(), failure: failureOf(error) });
      if (error instanceof TradeFeedError) deliver(stopped);
    },
    now: Date.now,
  };
};

/** Creates the notifier of `retryWhen` for a feed: `backoff` plus its events. */
export const reconnects = (
  policy: BackoffOptions,
  { emit, stop, now }: Reports,
  wakes$?: Observable<unknown>,
): ((failures: Observable<unknown>) => Observable<unknown>) => {
  const emitReconnect = ({ failure, delayMs, attempt }: Reconnect): void => {
    emit({ type: 'disconnected', at: now(), failure });
    emit({ type: 'reconnecting', at: now(), delayMs, attempt, verdict: failure.verdict });
  };
  return pipe(backoff(policy, emitReconnect, wakes$), tap({ error: stop }));
};

export const withEvents = <T>(values$: (deliver: Emit) => Observable<T>): Observable<T | LifecycleEvent> =>
  // Merging a Subject of events would put two more operators in the path of each frame.
  new Observable((subscriber) => {
    values$((event) => subscriber.next(event)).subscribe(subscriber);
  });
