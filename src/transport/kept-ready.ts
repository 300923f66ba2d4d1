import { defer, type MonoTypeOperatorFunction, repeat, takeUntil, timer } from 'rxjs';
import type { Settings } from '../options.js';

/** How long an idle connection is trusted, in ms: many servers, balancers and NATs forget it after 60 s, some without a word. */
export const MAX_IDLE_MS = 50_000;

/** A connection that lived as long as this, in ms, was not unwelcome. */
const WELCOME_MS = 10_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/**
 * Decides how long to wait before an idle connection is made anew, in ms: twice as long each time, unless the last one was let live.
 *
 * @param lastMs - the wait before the last one; 0 for none
 * @param livedMs - how long the last one lived
 */
export const nextWaitMs = (lastMs: number, livedMs: number): number =>
  livedMs >= WELCOME_MS ? FIRST_WAIT_MS : Math.min(LONGEST_WAIT_MS, Math.max(FIRST_WAIT_MS, 2 * lastMs));

/** What keeps the waits, and shortens them by up to a half. */
export type Patience = Pick<Settings['backoff'], 'random' | 'scheduler'>;

/**
 * Makes an idle connection again when it is gone, and when it is too old to be trusted.
 *
 * Never ends by itself: resubscribes to its source, which completes when the connection is gone, after a wait that grows while
 * the connections do not last.
 */
export const keptReady =
  <T>({ random, scheduler }: Patience): MonoTypeOperatorFunction<T> =>
  (connection$) =>
    defer(() => {
      let waitMs = 0;
      let madeAt = 0;
      return defer(() => {
        madeAt = scheduler.now();
        return connection$.pipe(takeUntil(timer(MAX_IDLE_MS, scheduler)));
      }).pipe(
        repeat({
          delay: () => {
            waitMs = nextWaitMs(waitMs, scheduler.now() - madeAt);
            // A `random` that gives no number must not make the wait none.
            return timer((waitMs * (1 + random())) / 2 || waitMs, scheduler);
          },
        }),
      );
    });
