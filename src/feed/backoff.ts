import {
  asapScheduler,
  concatMap,
  defer,
  delayWhen,
  EMPTY,
  merge,
  noop,
  type Observable,
  scan,
  type SchedulerLike,
  take,
  tap,
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
 * Creates the notifier of `retryWhen`: after each failure it waits as the policy says, then starts the next attempt.
 *
 * Emits when it's time for the next attempt. Errors at once with a failure whose verdict is `stop`, with any error that
 * isn't a `TradeFeedError`, and with `retries-exhausted` after `maxAttempts`. Never completes. Subscriptions don't
 * share state.
 *
 * @param policy - the policy, where it differs from the defaults of {@link BackoffPolicy}; durations in ms
 * @param onReconnect - called with each decision, before waiting
 * @param wakes$ - its first value ends a wait early, but never before a `Retry-After`. Subscribed to for each wait
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
      scan<unknown, Reconnect, undefined>((last, failure) => nextReconnect(resolved, last, failure), undefined),
      tap(onReconnect),
      concatMap((reconnect) => wait$(resolved, reconnect, wakes$)),
    );
};

/**
 * Creates the `delay` of RxJS 7's `retry`, with the same policy as {@link backoff}.
 *
 * The function counts attempts, so create one per subscription: inside `defer`, as in the example.
 *
 * @param policy - the policy, where it differs from the defaults of {@link BackoffPolicy}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { defer, of, retry } from 'rxjs';
 * import { openConnection, requestTicket, retryDelay } from 'rx-trade-feed';
 *
 * const frames$ = defer(() =>
 *   of('market' as const).pipe(
 *     requestTicket(),
 *     openConnection(),
 *     retry({ delay: retryDelay() }),
 *   ),
 * );
 * ```
 */
export const retryDelay = (policy?: BackoffOptions): ((failure: unknown) => Observable<unknown>) => {
  const resolved = resolveBackoff(policy);
  let last: Reconnect | undefined;
  return (failure) =>
    defer(() => {
      last = nextReconnect(resolved, last, failure);
      return timer(last.delayMs, resolved.scheduler);
    });
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

/** Decides how long the feed waits before it reconnects, and when it gives up. Durations in ms. */
export interface BackoffPolicy {
  /** Longest delay before the first reconnect. @defaultValue 500 */
  readonly initialDelayMs: number;
  /** Longest delay, unless a `Retry-After` is longer. @defaultValue 30 000 */
  readonly maxDelayMs: number;
  /** Factor by which the longest delay grows with each reconnect. @defaultValue 2 */
  readonly factor: number;
  /**
   * `full`: a random delay up to the longest; `equal`: a random one between half of it and all of it; `none`: always
   * the longest. `full` and `equal` also add the random delay of a first reconnect to a `Retry-After`.
   * @defaultValue `'full'`
   */
  readonly jitter: 'full' | 'equal' | 'none';
  /**
   * A connection that lives this long is stable and resets the attempts. If this is 0, every connection is stable, so
   * delays don't grow even if the service closes each connection at once. @defaultValue 5 000
   */
  readonly stableAfterMs: number;
  /**
   * How many reconnects in a row may fail to reach a stable connection: 3 means one attempt and three more.
   * @defaultValue `Infinity`
   */
  readonly maxAttempts: number;
  /** Returns a number from 0 up to 1, for the jitter. @defaultValue `Math.random` */
  readonly random: () => number;
  /** Schedules the delays. @defaultValue `asapScheduler`: uses a timer, except for a delay of 0 ms */
  readonly scheduler: SchedulerLike;
}

/** The parts of a policy that differ from the default. */
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
  // Lowers the default to `maxDelayMs` if the options have no `initialDelayMs`.
  if (options.initialDelayMs === undefined) return { ...policy, initialDelayMs: maxDelayMs };
  throw invalidOption('backoff.initialDelayMs', `at most maxDelayMs (${maxDelayMs})`, initialDelayMs);
};

/** The decision to reconnect. */
export interface Reconnect {
  /** The failure that ended the attempt. Its `previous` is set if the attempt was a reconnect. */
  readonly failure: TradeFeedError;
  /** Counts the reconnects since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** How long to wait first, in ms. */
  readonly delayMs: number;
  /** The `Retry-After`, with jitter, in ms. Even a wake-up doesn't cut the delay below it. */
  readonly floorMs: number;
  /** Whether a stable connection ended. */
  readonly afterStable: boolean;
}

/**
 * Applies the policy. Pure except for `policy.random`. Throws what stops the feed: a failure, or unchanged an error that
 * isn't a `TradeFeedError`.
 */
export const nextReconnect = (policy: BackoffPolicy, last: Reconnect | undefined, error: unknown): Reconnect => {
  if (!(error instanceof TradeFeedError)) throw error;
  // A failure from a relay may already have a `previous`.
  const failure =
    last && !error.previous
      ? copyFailure(error, { previous: copyFailure(last.failure, { previous: undefined }) })
      : error;
  if (failure.verdict === 'stop') throw failure;

  const afterStable = failure.stage === 'stream' && failure.uptimeMs >= policy.stableAfterMs;
  const attempt = afterStable ? 1 : (last?.attempt ?? 0) + 1;
  if (attempt > policy.maxAttempts) throw exhausted(policy, failure);

  // Reconnects at once only one time per stable connection. Doing it twice could start a busy loop.
  const mayRenewAtOnce = afterStable || (failure.stage !== 'stream' && last?.afterStable === true && last.delayMs > 0);
  const atOnce = failure.verdict === 'renew' && mayRenewAtOnce;
  // A `Retry-After` gets jitter as well, or all clients that received the same one would reconnect at the same moment.
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
  // Never waits 0 ms, even if `random` returns NaN.
  return Math.max(1, Math.round(share * longestMs) || 1);
};

const exhausted = ({ maxAttempts }: BackoffPolicy, failure: TradeFeedError): TradeFeedError => {
  const { stage, uptimeMs, framesReceived, endedAt, previous } = failure;
  const detail = `maxAttempts is ${maxAttempts}; the last failure was ${failure.code}`;
  const facts = { stage, uptimeMs, framesReceived, endedAt, detail, cause: failure, previous };
  return createFailure(retriesExhausted, facts);
};
