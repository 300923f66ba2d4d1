import { defer, interval, mergeMap, type Observable, type SchedulerLike } from 'rxjs';

/** The shortest time between two bursts, in ms: below it timers cost more than they give. */
const shortestTickMs = 4;
/** What a process that was held up makes up for, in seconds; the rest is left out, or it would come as one flood. */
const longestCatchUpS = 0.1;

/**
 * Emits what a maker makes at a rate: one by one at a low rate, in bursts at a high one. Never completes.
 *
 * Each subscription has a maker of its own, so it begins with the first value of the sequence.
 *
 * @param rate - values a second, on average
 * @param makeMaker - makes the maker of a subscription
 */
export const paced$ = <T>(rate: number, makeMaker: () => () => T, scheduler: SchedulerLike): Observable<T> =>
  defer(() => {
    const make = makeMaker();
    const startedAt = scheduler.now();
    const most = Math.max(1, Math.ceil(rate * longestCatchUpS));
    let done = 0;
    return interval(Math.max(shortestTickMs, 1000 / rate), scheduler).pipe(
      mergeMap(() => {
        const due = Math.round(((scheduler.now() - startedAt) * rate) / 1000) - done;
        done += Math.max(0, due);
        return Array.from({ length: Math.min(most, Math.max(0, due)) }, make);
      }),
    );
  });
