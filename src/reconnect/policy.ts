import { asapScheduler, type SchedulerLike } from 'rxjs';
import { copyFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { retriesExhausted } from '../protocol/failures/client-meanings.js';
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
} from '../protocol/rules.js';

/** How the waits between reconnects grow, and when they end. Durations in ms. The notifier that keeps it is in backoff.ts. */
export interface BackoffPolicy {
  /** The longest first wait. @defaultValue 500 */
  readonly initialDelayMs: number;
  /** The longest wait of all. @defaultValue 30 000 */
  readonly maxDelayMs: number;
  /** By how much the longest wait grows with each reconnect. @defaultValue 2 */
  readonly factor: number;
  /**
   * `full`: anywhere up to the longest wait; `equal`: in its upper half; `none`: just as long. Unless it is `none`, up to a first wait is
   * added to a `Retry-After` as well. @defaultValue `'full'`
   */
  readonly jitter: 'full' | 'equal' | 'none';
  /**
   * A connection that lived this long is stable, and resets the attempts. With 0 every connection is, and nothing brakes the
   * reconnects to a service that opens and closes at once. @defaultValue 5 000
   */
  readonly stableAfterMs: number;
  /** Reconnects in a row without a stable connection: 3 means one first attempt and three more. @defaultValue `Infinity` */
  readonly maxAttempts: number;
  /** Gives a number from 0 up to 1, for the jitter. @defaultValue `Math.random` */
  readonly random: () => number;
  /** Keeps the waits. @defaultValue `asapScheduler`: a timer for each wait, but none for a wait of 0 ms */
  readonly scheduler: SchedulerLike;
}

/** What differs from the default policy. */
export type BackoffOptions = { readonly [Name in keyof BackoffPolicy]?: BackoffPolicy[Name] | undefined };

/** The policy that holds where nothing else is said. */
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
  factor: { allowed: 'a number, 1 or more', is: (v) => typeof v === 'number' && v >= 1 },
  jitter: oneOf('full', 'equal', 'none'),
  stableAfterMs: durationMs,
  maxAttempts: aCount(0),
  random: aFunction,
  scheduler: aScheduler,
};

/** Fills a policy up with the defaults; throws a `TradeFeedError` with code `invalid-options` when it is not valid. */
export const resolveBackoff = (given: BackoffOptions = {}): BackoffPolicy => {
  const policy = { ...defaultBackoff, ...validated<BackoffOptions>(given, rules, 'backoff.') };
  const { initialDelayMs, maxDelayMs } = policy;
  if (initialDelayMs <= maxDelayMs) return policy;
  // What is resolved is resolved again by each building block: the default must not stand in its way.
  if (given.initialDelayMs === undefined) return { ...policy, initialDelayMs: maxDelayMs };
  throw invalidOption('backoff.initialDelayMs', `at most maxDelayMs (${maxDelayMs})`, initialDelayMs);
};

/** The decision to try again: after which failure, for which time in a row, and when. */
export interface Reconnect {
  /** What ended the last attempt; its `previous` is set when a reconnect had led there. */
  readonly failure: TradeFeedError;
  /** Which reconnect since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** How long to wait before it, in ms. */
  readonly delayMs: number;
  /** How long to wait at least, whatever happens in the meantime, in ms: a `Retry-After`. */
  readonly floorMs: number;
  /** Whether the connection that ended had been stable. */
  readonly afterStable: boolean;
}

/** The decision to give up, with the error that says why. */
export interface Stop {
  readonly stop: unknown;
}

/**
 * Decides what follows a failure, from it and the decision before: the whole policy, as a fold.
 *
 * Pure but for `policy.random`. What is no `TradeFeedError` is somebody's own exception, and stops as it is.
 *
 * @param policy - a resolved policy
 * @param last - the decision before this one; `undefined` for the first failure
 * @param error - what ended the attempt
 */
export const nextReconnect = (policy: BackoffPolicy, last: Reconnect | undefined, error: unknown): Reconnect | Stop => {
  if (!(error instanceof TradeFeedError)) return { stop: error };
  // What stopped a feed behind a relay has a failure before it already.
  const failure =
    last && !error.previous
      ? copyFailure(error, { previous: copyFailure(last.failure, { previous: undefined }) })
      : error;
  if (failure.verdict === 'stop') return { stop: failure };

  const afterStable = failure.stage === 'stream' && failure.uptimeMs >= policy.stableAfterMs;
  const attempt = afterStable ? 1 : (last?.attempt ?? 0) + 1;
  if (attempt > policy.maxAttempts) return { stop: exhausted(policy, failure) };

  // One reconnect at once per stable connection: a second zero in a row would be a loop without a brake.
  const mayRenewAtOnce = afterStable || (failure.stage !== 'stream' && last?.afterStable === true && last.delayMs > 0);
  const atOnce = failure.verdict === 'renew' && mayRenewAtOnce;
  // Jitter holds on top of a floor, too: everybody who was told the same second would come back in the same moment.
  const askedMs = failure.retryAfterMs && failure.retryAfterMs + (policy.jitter === 'none' ? 0 : jitteredMs(policy, 1));
  const ownMs = atOnce || (askedMs && failure.verdict === 'wait') ? 0 : jitteredMs(policy, attempt);
  const floorMs = clampMs(askedMs ?? 0);
  return { failure, attempt, delayMs: Math.max(floorMs, ownMs), floorMs, afterStable };
};

const jitteredMs = ({ initialDelayMs, maxDelayMs, factor, jitter, random }: BackoffPolicy, attempt: number): number => {
  const longestMs = Math.min(clampMs(maxDelayMs), Math.max(1, initialDelayMs) * factor ** (attempt - 1));
  const drawn = jitter === 'none' ? 1 : random();
  const share = jitter === 'equal' ? (1 + drawn) / 2 : drawn;
  // A `random` that gives no number must not make the wait none.
  return Math.max(1, Math.round(share * longestMs) || 1);
};

const exhausted = ({ maxAttempts }: BackoffPolicy, failure: TradeFeedError): TradeFeedError => {
  const { stage, uptimeMs, framesReceived, endedAt, previous } = failure;
  const detail = `maxAttempts is ${maxAttempts}; the last failure was ${failure.code}`;
  const facts = { stage, uptimeMs, framesReceived, endedAt, detail, cause: failure };
  return copyFailure(createFailure(retriesExhausted, facts), { previous });
};
