import { catchError, connect, EMPTY, finalize, ignoreElements, merge, type MonoTypeOperatorFunction, tap } from 'rxjs';
import { type Freshness, freshness, type FreshnessOptions } from '../operators/freshness.js';
import type { FeedEvent } from '../protocol/event.js';

/**
 * Calls a function with each change of the freshness of a feed, and with `undefined` when the subscription ends. Forwards the events unchanged.
 */
export const trackFreshness =
  (options: FreshnessOptions, set: (state: Freshness | undefined) => void): MonoTypeOperatorFunction<FeedEvent> =>
  (source) =>
    source.pipe(
      connect((events$) =>
        merge(
          events$.pipe(
            freshness(options),
            tap(set),
            ignoreElements(),
            // The other branch handles the same error.
            catchError(() => EMPTY),
          ),
          events$,
        ),
      ),
      finalize(() => set(undefined)),
    );
