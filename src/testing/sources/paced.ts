import { defer, interval, mergeMap, type Observable, type SchedulerLike } from 'rxjs';

/** The minimum time between two bursts, in ms: more timers would cost too much CPU time. */
const shortestTickMs = 4;
/** How much time a blocked process catches up on, in seconds. Values beyond it are skipped, to avoid one very large burst. */
const longestCatchUpS = 0.1;

/**
 * Emits values at an average rate: one by one at a low rate, in bursts at a high rate. Never completes.
 *
 * Each subscription calls `createFactory`, so each begins with the first value of the sequence.
 *
 * @param rate - values per second, on average
 * @param createFactory - returns the function that creates the values of a subscription
 */
export const paced$ = <T>(rate: number, createFactory: () => () => T, scheduler: SchedulerLike): Observable<T> =>
  defer(() => {
    const create = createFactory();
    const startedAt = scheduler.now();
    const most = Math.max(1, Math.ceil(rate * longestCatchUpS));
    let done = 0;
    return interval(Math.max(shortestTickMs, 1000 / rate), scheduler).pipe(
      mergeMap(() => {
        const due = Math.round(((scheduler.now() - startedAt) * rate) / 1000) - done;
        done += Math.max(0, due);
        return Array.from({ length: Math.min(most, Math.max(0, due)) }, create);
      }),
    );
  });
