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
 * Emits after one turn of the event loop in which sockets are read. When a blocked event loop continues, Node runs timers before it
 * reads sockets. Data that has already arrived must be read before a timer ends the attempt.
 */
export const socketsRead$ = new Observable<void>((subscriber) => {
  const turn = setImmediate(() => {
    subscriber.next();
    subscriber.complete();
  });
  return () => clearImmediate(turn);
});

/** Emits once after `ms`, after the sockets were read, then completes. */
export const timerAfterReads = (
  ms: number,
  scheduler?: SchedulerLike,
  reads$: Observable<unknown> = socketsRead$,
): Observable<unknown> => timer(clampMs(ms), scheduler).pipe(delayWhen(() => reads$));

/** Errors when the source emits nothing within `ms` of subscribing, even if bytes keep arriving. */
export const deadline = <T>(ms: number, onTimeout: () => unknown): MonoTypeOperatorFunction<T> =>
  raceWith(timerAfterReads(ms).pipe(switchMap(() => throwError(onTimeout))));
