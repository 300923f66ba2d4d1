import { defer, filter, map, NEVER, type Observable, repeat, type SchedulerLike, switchMap, take, tap } from 'rxjs';
import { socketsRead$, timerAfterReads } from './deadline.js';

/** Longest wait for the answer to a ping, in ms. */
const MAX_ANSWER_MS = 5_000;

/** The connection to check. */
export interface Pulse {
  /** Returns when bytes were last read, in ms on the clock of `now`. */
  readonly lastReadMs: () => number;
  /** Sends a WebSocket ping, which the service must answer (RFC 6455, 5.5.2). */
  readonly ping: () => void;
  /** A monotonic clock. @defaultValue `performance.now` */
  readonly now?: () => number;
  /** Runs the timers. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike;
  /** Emits when all bytes that have arrived are read. @defaultValue emits after one turn of the event loop */
  readonly reads$?: Observable<unknown>;
}

/**
 * Emits once, then completes, when a connection is stalled: no bytes arrived for `idleTimeoutMs`, and none arrived in the same time
 * (at most 5 s) after a ping. Any byte counts as an answer. Never emits when `idleTimeoutMs` is 0.
 */
export const stalled$ = (
  { lastReadMs, ping, now = () => performance.now(), scheduler, reads$ = socketsRead$ }: Pulse,
  idleTimeoutMs: number,
): Observable<unknown> => {
  const after = (ms: number) => timerAfterReads(ms, scheduler, reads$);

  const check$ = defer(() => after(Math.max(1, lastReadMs() + idleTimeoutMs - now()))).pipe(
    filter(() => now() - lastReadMs() >= idleTimeoutMs),
    map(lastReadMs),
    tap(ping),
    switchMap((lastReadAtPing) =>
      after(Math.min(idleTimeoutMs, MAX_ANSWER_MS)).pipe(filter(() => lastReadMs() === lastReadAtPing)),
    ),
  );
  return idleTimeoutMs === 0 ? NEVER : check$.pipe(repeat(), take(1));
};
