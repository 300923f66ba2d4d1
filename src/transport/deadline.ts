import {
  delayWhen,
  type MonoTypeOperatorFunction,
  Observable,
  raceWith,
  type SchedulerLike,
  switchMap,
  throwError,
  timer,
} from 'rxjs';
import { clampMs } from '../protocol/rules.js';

/**
 * One turn of the event loop in which sockets are read. After a blocked loop Node runs timers first: what has already
 * arrived must count before a timer's verdict does.
 */
export const socketsRead$ = new Observable<void>((subscriber) => {
  const turn = setImmediate(() => {
    subscriber.next();
    subscriber.complete();
  });
  return () => clearImmediate(turn);
});

/** A timer that fires after the sockets were read. Emits once, then completes. */
export const timerAfterReads = (
  ms: number,
  scheduler?: SchedulerLike,
  reads$: Observable<unknown> = socketsRead$,
): Observable<unknown> => timer(clampMs(ms), scheduler).pipe(delayWhen(() => reads$));

/** Errors when nothing was emitted within `ms` of subscribing, however many bytes may drip meanwhile. */
export const deadline = <T>(ms: number, onTimeout: () => unknown): MonoTypeOperatorFunction<T> =>
  raceWith(timerAfterReads(ms).pipe(switchMap(() => throwError(onTimeout))));
