import {
  defer,
  delayWhen,
  filter,
  map,
  type MonoTypeOperatorFunction,
  NEVER,
  Observable,
  raceWith,
  repeat,
} from 'rxjs';
import { switchMap, take, tap, throwError, timer } from 'rxjs';
import { clampMs } from '../protocol/validate.js';

/**
 * Emits after one turn of the event loop in which sockets are read. When a blocked event loop continues, Node runs
 * timers before it reads sockets. Data that has already arrived must be read before a timer ends the attempt.
 */
const socketsRead$ = new Observable<void>((subscriber) => {
  const immediate = setImmediate(() => {
    subscriber.next();
    subscriber.complete();
  });
  return () => clearImmediate(immediate);
});

const timerAfterReads = (ms: number): Observable<unknown> => timer(clampMs(ms)).pipe(delayWhen(() => socketsRead$));

export const deadline = <T>(ms: number, onTimeout: () => unknown): MonoTypeOperatorFunction<T> =>
  raceWith(timerAfterReads(ms).pipe(switchMap(() => throwError(onTimeout))));

const MAX_ANSWER_MS = 5_000;

interface Pulse {
  /** Returns when bytes were last read, in ms on the clock of `performance.now`. */
  readonly lastReadMs: () => number;
  /** Sends a WebSocket ping, which the service must answer (RFC 6455, 5.5.2). */
  readonly ping: () => void;
}

/**
 * Emits once, then completes, when a connection is stalled: no bytes arrived for `idleTimeoutMs`, and none arrived in
 * the same time (at most 5 s) after a ping. Any byte counts as an answer. Never emits when `idleTimeoutMs` is 0.
 */
export const stalled$ = ({ lastReadMs, ping }: Pulse, idleTimeoutMs: number): Observable<unknown> => {
  const silentMs = (): number => performance.now() - lastReadMs();
  const check$ = defer(() => timerAfterReads(Math.max(1, idleTimeoutMs - silentMs()))).pipe(
    filter(() => silentMs() >= idleTimeoutMs),
    map(lastReadMs),
    tap(ping),
    switchMap((lastReadAtPing) =>
      timerAfterReads(Math.min(idleTimeoutMs, MAX_ANSWER_MS)).pipe(filter(() => lastReadMs() === lastReadAtPing)),
    ),
  );
  return idleTimeoutMs === 0 ? NEVER : check$.pipe(repeat(), take(1));
};
