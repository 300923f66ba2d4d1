import {
  asapScheduler,
  concatMap,
  delayWhen,
  EMPTY,
  merge,
  noop,
  type Observable,
  scan,
  type SchedulerLike,
  take,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { copyFailure, createFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { retriesExhausted } from '../protocol/failures/meanings.js';
import { isNumber } from '../protocol/type-guards.js';
import {
  aCount,
  aFunction,
  aScheduler,
  clampMs,
  durationMs,
  invalidOption,
  oneOf,
  type Rule,
  validated,
} from '../protocol/validate.js';

/**
 * Creates the notifier of `retryWhen`: waits after each failure, as the policy decides, then starts the next attempt.
 *
 * Emits at the end of each wait. Errors at once with a failure whose verdict is `stop`, with any error that is not a
 * `TradeFeedError`, and with `retries-exhausted` after `maxAttempts`. Never completes. Each subscription has separate
 * state.
 *
 * @param policy - the policy, where it differs from the defaults of {@link BackoffPolicy}; durations in ms
 * @param onReconnect - is called with each decision, before the wait begins
 * @param wakes$ - its first value during a wait ends the wait early, but not before a `Retry-After`. It is subscribed
 *   to for each wait
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

/** The policy of the reconnects: how the waits grow, and when the feed stops. Durations in ms. */
export interface BackoffPolicy {
  /** Longest first wait. @defaultValue 500 */
  readonly initialDelayMs: number;
  /** Longest wait, unless a `Retry-After` is longer. @defaultValue 30 000 */
  readonly maxDelayMs: number;
  /** Factor by which the longest wait grows with each reconnect. @defaultValue 2 */
  readonly factor: number;
  /**
   * `full`: a random wait up to the longest one; `equal`: a random wait between half of it and all of it; `none`: the
   * longest wait. With `full` and `equal`, the random wait of a first reconnect is added to a `Retry-After`.
   * @defaultValue `'full'`
   */
  readonly jitter: 'full' | 'equal' | 'none';
  /**
   * A connection that lived this long is stable and resets the attempts. With 0 every connection is stable, so the
   * waits do not grow if the service closes each connection at once. @defaultValue 5 000
   */
  readonly stableAfterMs: number;
  /**
   * Reconnects in a row without a stable connection: 3 means one first attempt and three more. @defaultValue `Infinity`
   */
  readonly maxAttempts: number;
  /** Returns a number from 0 up to 1, for the jitter. @defaultValue `Math.random` */
  readonly random: () => number;
  /** Schedules the waits. @defaultValue `asapScheduler`: uses a timer, except for a wait of 0 ms */
  readonly scheduler: SchedulerLike;
}

/** A policy, where it differs from the default. */
export type BackoffOptions = { readonly [Name in keyof BackoffPolicy]?: BackoffPolicy[Name] | undefined };

export const defaultBackoff: BackoffPolicy = Object.freeze({
  initialDelayMs: 500,
  maxDelayMs: 30_000,
  factor: 2,
  jitter: 'full',
  stableAfterMs: 5_000,
  maxAttempts: Infinity,
  random: Math.random,
  scheduler: asapScheduler,
});

const rules: Readonly<Record<keyof BackoffPolicy, Rule>> = {
  initialDelayMs: durationMs,
  maxDelayMs: durationMs,
  factor: { allowed: 'a number, 1 or more', is: (v) => isNumber(v) && v >= 1 },
  jitter: oneOf('full', 'equal', 'none'),
  stableAfterMs: durationMs,
  maxAttempts: aCount(0),
  random: aFunction,
  scheduler: aScheduler,
};

export const resolveBackoff = (options: BackoffOptions = {}): BackoffPolicy => {
  const policy = { ...defaultBackoff, ...validated<BackoffOptions>(options, rules, 'backoff.') };
  const { initialDelayMs, maxDelayMs } = policy;
  if (initialDelayMs <= maxDelayMs) return policy;
  // Without an `initialDelayMs` in the options, its default is lowered to `maxDelayMs`.
  if (options.initialDelayMs === undefined) return { ...policy, initialDelayMs: maxDelayMs };
  throw invalidOption('backoff.initialDelayMs', `at most maxDelayMs (${maxDelayMs})`, initialDelayMs);
};

/** The decision to reconnect. */
export interface Reconnect {
  /** The failure that ended the attempt. Its `previous` is set if the attempt was a reconnect. */
  readonly failure: TradeFeedError;
  /** Which reconnect since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** How long to wait before it, in ms. */
  readonly delayMs: number;
  /** Shortest wait in ms, even if the wait is ended early: the `Retry-After`, with jitter. */
  readonly floorMs: number;
  /** Whether the connection that ended had been stable. */
  readonly afterStable: boolean;
}

export interface Stop {
  readonly stop: unknown;
}

/**
 * The complete policy, pure except for `policy.random`. An error that is not a `TradeFeedError` stops the feed,
 * unchanged.
 */
export const nextReconnect = (policy: BackoffPolicy, last: Reconnect | undefined, error: unknown): Reconnect | Stop => {
  if (!(error instanceof TradeFeedError)) return { stop: error };
  // A failure that a relay sent can have a `previous` already.
  const failure =
    last && !error.previous
      ? copyFailure(error, { previous: copyFailure(last.failure, { previous: undefined }) })
      : error;
  if (failure.verdict === 'stop') return { stop: failure };

  const afterStable = failure.stage === 'stream' && failure.uptimeMs >= policy.stableAfterMs;
  const attempt = afterStable ? 1 : (last?.attempt ?? 0) + 1;
  if (attempt > policy.maxAttempts) return { stop: exhausted(policy, failure) };

  // Only one reconnect without a wait per stable connection. A second one could start a loop without waits.
  const mayRenewAtOnce = afterStable || (failure.stage !== 'stream' && last?.afterStable === true && last.delayMs > 0);
  const atOnce = failure.verdict === 'renew' && mayRenewAtOnce;
  // Jitter is added to a `Retry-After`, too. Otherwise all clients with the same `Retry-After` would reconnect at the
  // same moment.
  const requestedMs =
    failure.retryAfterMs && failure.retryAfterMs + (policy.jitter === 'none' ? 0 : jitteredMs(policy, 1));
  const policyMs = atOnce || (requestedMs && failure.verdict === 'wait') ? 0 : jitteredMs(policy, attempt);
  const floorMs = clampMs(requestedMs ?? 0);
  return { failure, attempt, delayMs: Math.max(floorMs, policyMs), floorMs, afterStable };
};

const jitteredMs = ({ initialDelayMs, maxDelayMs, factor, jitter, random }: BackoffPolicy, attempt: number): number => {
  const longestMs = Math.min(clampMs(maxDelayMs), Math.max(1, initialDelayMs) * factor ** (attempt - 1));
  const drawn: unknown = jitter === 'none' ? 1 : random();
  if (!isNumber(drawn)) throw invalidOption('backoff.random', 'a function that returns a number from 0 to 1');
  const share = jitter === 'equal' ? (1 + drawn) / 2 : drawn;
  // If `random` returns NaN, the wait must not become 0.
  return Math.max(1, Math.round(share * longestMs) || 1);
};

const exhausted = ({ maxAttempts }: BackoffPolicy, failure: TradeFeedError): TradeFeedError => {
  const { stage, uptimeMs, framesReceived, endedAt, previous } = failure;
  const detail = `maxAttempts is ${maxAttempts}; the last failure was ${failure.code}`;
  return createFailure(retriesExhausted, {
    ...{ stage, uptimeMs, framesReceived, endedAt, detail, cause: failure, previous },
  });
};
