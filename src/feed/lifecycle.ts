import { asyncScheduler, noop, Observable, pipe, type SchedulerLike, Subscription, tap, timer } from 'rxjs';
import type { Disconnected, LifecycleEvent, Reconnecting } from '../protocol/event.js';
import { failureOf, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { afterEvent, afterFrame, afterTime, type FeedState, noFeed } from '../protocol/feed-state.js';
import { backoff, type BackoffOptions, type Reconnect } from './backoff.js';

export type Emit = (event: LifecycleEvent) => void;

export interface Lifecycle extends Reports {
  readonly emit: Emit;
  /** Receives the first frame of each connection, before the subscriber does. @param at - when it arrived, in epoch ms */
  readonly firstFrame: (at: number) => void;
  /** Returns whether a connection of this subscription has opened. */
  readonly hasOpened: () => boolean;
}

interface Reports {
  /** Receives the events while reconnecting. */
  readonly emit: (event: Disconnected | Reconnecting) => void;
  /** Receives the error that ends the feed. */
  readonly stop: (error: unknown) => void;
  /** Returns the stream's time, in epoch ms. */
  readonly now: () => number;
}

interface LifecycleOptions {
  /** Receives each event first, with the state after it. @defaultValue nobody */
  readonly observe?: ((event: LifecycleEvent, state: FeedState) => void) | undefined;
  /** The state before the first event. @defaultValue no feed */
  readonly before?: FeedState | undefined;
  /** What waits for the first frame; `undefined` if the time comes from watermarks. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * The one place that adds events: the `gap` of an outage when the next connection is complete, `stopped` before the
 * error. Observers get the same objects as the subscriber, and get them first. They also see `stopped` if the caller's
 * code threw. `end` stops its timer.
 */
export const createLifecycle = (
  deliver: Emit,
  options: LifecycleOptions = {},
): Lifecycle & { readonly end: () => void } => {
  const { observe = noop, before = noFeed, scheduler } = { scheduler: asyncScheduler, ...options };
  let state = before;
  let timeout = Subscription.EMPTY;
  const follow = (next: FeedState): void => {
    const { settling } = next;
    const hasChanged = settling !== state.settling;
    state = next;
    if (!hasChanged) return;
    timeout.unsubscribe();
    if (settling === undefined || scheduler === undefined) return;
    const { openedAt, until } = settling;
    // A timer may fire up to 1 ms early.
    timeout = timer(until - openedAt + 1, scheduler).subscribe(() => pass(afterTime(state, until)));
  };
  const show = (events: readonly LifecycleEvent[]): void => events.forEach((event) => observe(event, state));
  const pass = (next: FeedState): void => {
    follow(next);
    show(next.gaps);
    next.gaps.forEach(deliver);
  };
  /** Folds an event. Returns it with the gaps before and after it. */
  const fold = (event: LifecycleEvent): readonly LifecycleEvent[] => {
    const next = afterEvent(state, event, undefined);
    const isComplete = event.type === 'opened' && next.settling !== undefined && next.settling.until <= event.at;
    follow(isComplete ? afterTime(next, event.at) : next);
    const events = [...next.gaps.filter((gap) => gap !== event), event, ...(isComplete ? state.gaps : [])];
    show(events);
    return events;
  };
  return {
    emit: (event) => fold(event).forEach(deliver),
    firstFrame: (at) => pass(afterFrame(state, at)),
    hasOpened: () => state.hasOpened,
    stop: (error) => {
      const events = fold({ type: 'stopped', at: Date.now(), failure: failureOf(error) });
      if (error instanceof TradeFeedError) events.forEach(deliver);
    },
    now: Date.now,
    end: () => timeout.unsubscribe(),
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
