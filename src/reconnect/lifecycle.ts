import { defer, identity, merge, type MonoTypeOperatorFunction, type Observable, Subject, tap } from 'rxjs';
import type { LifecycleEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Reconnect } from './policy.js';

/** Emits a lifecycle event of a feed. */
export type Emit = (event: LifecycleEvent) => void;

/** Emits a reconnect as two events: `disconnected` with the failure, and `reconnecting` with the wait. */
export const reconnecting =
  (emit: Emit) =>
  ({ failure, delayMs, attempt }: Reconnect): void => {
    emit({ type: 'disconnected', at: Date.now(), failure });
    emit({ type: 'reconnecting', at: Date.now(), delayMs, attempt, verdict: failure.verdict });
  };

/**
 * Merges the lifecycle events of a feed into its values.
 *
 * Emits `stopped` before the error of the feed, if the error is a `TradeFeedError`. Completes and errors with the feed.
 *
 * @param values$ - returns the values of the feed, and calls `emit` for each lifecycle event
 * @param events - is applied to the lifecycle events @defaultValue `identity`
 */
export const withLifecycle = <T>(
  values$: (emit: Emit) => Observable<T>,
  events: MonoTypeOperatorFunction<LifecycleEvent> = identity,
): Observable<T | LifecycleEvent> =>
  defer(() => {
    const lifecycle = new Subject<LifecycleEvent>();
    const emit: Emit = (event) => lifecycle.next(event);
    return merge(
      lifecycle.pipe(events),
      values$(emit).pipe(tap({ error: stopped(emit), complete: () => lifecycle.complete() })),
    );
  });

// An exception of the caller's code (an option that is a function, an operator) is not a failure of the feed.
const stopped =
  (emit: Emit) =>
  (failure: unknown): void => {
    if (failure instanceof TradeFeedError) emit({ type: 'stopped', at: Date.now(), failure });
  };
