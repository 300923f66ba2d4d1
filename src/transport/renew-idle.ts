import { defer, type MonoTypeOperatorFunction, repeat, takeUntil, timer } from 'rxjs';
import type { Settings } from '../options.js';

/** Longest age of a reusable idle connection, in ms. Many servers, load balancers and NATs drop idle connections after 60 s, some silently. */
export const MAX_IDLE_MS = 50_000;

/** If an idle connection lived this long, in ms, the server accepts idle connections. */
const ACCEPTED_MS = 10_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/**
 * Returns the wait before an idle connection is opened again, in ms. Doubles the wait each time, and resets it after a connection
 * that the server accepted.
 *
 * @param lastMs - the wait before the last connection; 0 if there was none
 * @param livedMs - how long the last connection lived
 */
export const nextWaitMs = (lastMs: number, livedMs: number): number =>
  livedMs >= ACCEPTED_MS ? FIRST_WAIT_MS : Math.min(LONGEST_WAIT_MS, Math.max(FIRST_WAIT_MS, 2 * lastMs));

/** Schedules the waits, and shortens each one randomly by up to a half. */
export type RenewTiming = Pick<Settings['backoff'], 'random' | 'scheduler'>;

/**
 * Opens an idle connection again when it is closed, and when it is too old to be reused.
 *
 * Never completes. The source opens the connection and completes when the connection is closed; the operator resubscribes to it
 * after a wait that doubles each time, until a connection lives for 10 s.
 */
export const renewIdle =
  <T>({ random, scheduler }: RenewTiming): MonoTypeOperatorFunction<T> =>
  (connection$) =>
    defer(() => {
      let waitMs = 0;
      let openedAt = 0;
      return defer(() => {
        openedAt = scheduler.now();
        return connection$.pipe(takeUntil(timer(MAX_IDLE_MS, scheduler)));
      }).pipe(
        repeat({
          delay: () => {
            waitMs = nextWaitMs(waitMs, scheduler.now() - openedAt);
            // If `random` returns NaN, the wait must not become 0.
            return timer((waitMs * (1 + random())) / 2 || waitMs, scheduler);
          },
        }),
      );
    });
