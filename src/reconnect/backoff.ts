import { concatMap, delayWhen, EMPTY, merge, noop, type Observable, scan, take, tap, throwError, timer } from 'rxjs';
import {
  type BackoffOptions,
  type BackoffPolicy,
  nextReconnect,
  type Reconnect,
  resolveBackoff,
  type Stop,
} from './policy.js';

/**
 * Creates the notifier of `retryWhen`: waits after each failure, as the policy decides, then starts the next attempt.
 *
 * Emits at the end of each wait. Errors at once with a failure whose verdict is `stop`, with any error that is not a
 * `TradeFeedError`, and with `retries-exhausted` after `maxAttempts`. Never completes. Each subscription has separate state.
 *
 * @param policy - the policy, where it differs from the defaults of {@link BackoffPolicy}; durations in ms
 * @param onReconnect - is called with each decision, before the wait begins
 * @param wakes$ - its first value during a wait ends the wait early, but not before a `Retry-After`. It is subscribed to for each wait
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { defer, of, retryWhen } from 'rxjs';
 * import { backoff, openConnection, requestTicket } from 'rx-trade-feed';
 *
 * const frames$ = defer(() => of('market' as const)).pipe(
 *   requestTicket(),
 *   openConnection(),
 *   retryWhen(backoff({ maxDelayMs: 10_000 })),
 * );
 * ```
 */
export const backoff = (
  policy?: BackoffOptions,
  onReconnect: (reconnect: Reconnect) => void = noop,
  wakes$: Observable<unknown> = EMPTY,
): ((failures: Observable<unknown>) => Observable<unknown>) => {
  const resolved = resolveBackoff(policy);
  return (failures) =>
    failures.pipe(
      scan<unknown, Reconnect, undefined>(
        (last, failure) => orThrow(nextReconnect(resolved, last, failure)),
        undefined,
      ),
      tap(onReconnect),
      concatMap((reconnect) => wait$(resolved, reconnect, wakes$)),
    );
};

/**
 * Creates the `delay` of RxJS 7's `retry`, with the same policy as {@link backoff}.
 *
 * The function counts the attempts, so create one per subscription: inside `defer`, as in the example.
 *
 * @param policy - the policy, where it differs from the defaults of {@link BackoffPolicy}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { defer, of, retry } from 'rxjs';
 * import { openConnection, requestTicket, retryDelay } from 'rx-trade-feed';
 *
 * const frames$ = defer(() =>
 *   of('market' as const).pipe(requestTicket(), openConnection(), retry({ delay: retryDelay() })),
 * );
 * ```
 */
export const retryDelay = (policy?: BackoffOptions): ((failure: unknown) => Observable<unknown>) => {
  const resolved = resolveBackoff(policy);
  let last: Reconnect | undefined;
  return (failure) => {
    const next = nextReconnect(resolved, last, failure);
    if ('stop' in next) return throwError(() => next.stop);
    last = next;
    return timer(next.delayMs, resolved.scheduler);
  };
};

const wait$ = (
  { scheduler }: BackoffPolicy,
  { delayMs, floorMs }: Reconnect,
  wakes$: Observable<unknown>,
): Observable<unknown> => {
  const earliest = new Date(scheduler.now() + floorMs);
  const woken$ = wakes$.pipe(
    take(1),
    delayWhen(() => timer(earliest, scheduler)),
  );
  return merge(timer(delayMs, scheduler), woken$).pipe(take(1));
};

const orThrow = (next: Reconnect | Stop): Reconnect => {
  if ('stop' in next) throw next.stop;
  return next;
};
