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
  switchMap,
  take,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { clampMs } from '../protocol/validate.js';

/**
 * Emits after sockets were read once. When a blocked event loop continues, Node runs timers before it reads sockets, so
 * a timer could end the attempt although its data has already arrived.
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
  /** Returns when bytes were last read, in ms by `performance.now`. */
  readonly lastReadMs: () => number;
  /** Sends a WebSocket ping, which the service must answer (RFC 6455, 5.5.2). */
  readonly ping: () => void;
}

/**
 * Emits and completes when a connection is stalled: no bytes arrived for `idleTimeoutMs`, nor for the same time (at
 * most 5 s) after a ping. Any byte counts as an answer. Never emits if `idleTimeoutMs` is 0.
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
