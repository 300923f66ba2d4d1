import { defer, filter, map, NEVER, type Observable, repeat, type SchedulerLike, switchMap, take, tap } from 'rxjs';
import { socketsRead$, timerAfterReads } from './deadline.js';

/** How long a connection may take to answer a ping, in ms, at the most. */
const MAX_ANSWER_MS = 5_000;

/** What the check of a connection needs to know and to do. */
export interface Pulse {
  /** When anything was last read from it, in ms on the clock of `now`. */
  readonly heardAtMs: () => number;
  /** Asks the other side for a sign of life: a WebSocket ping, a control frame (RFC 6455, 5.5.2). */
  readonly ping: () => void;
  /** A monotonic clock. @defaultValue `performance.now` */
  readonly now?: () => number;
  /** Keeps the timers. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike;
  /** Emits once all that had arrived was read. @defaultValue one turn of the event loop */
  readonly reads$?: Observable<unknown>;
}

/**
 * Watches a connection: emits once, then completes, when it has been silent for `idleTimeoutMs` and a ping got no answer
 * within as long again (5 s at the most). Any byte is a sign of life. Never emits when `idleTimeoutMs` is 0.
 */
export const stalled$ = (
  { heardAtMs, ping, now = () => performance.now(), scheduler, reads$ = socketsRead$ }: Pulse,
  idleTimeoutMs: number,
): Observable<unknown> => {
  const after = (ms: number) => timerAfterReads(ms, scheduler, reads$);

  const check$ = defer(() => after(Math.max(1, heardAtMs() + idleTimeoutMs - now()))).pipe(
    filter(() => now() - heardAtMs() >= idleTimeoutMs),
    map(heardAtMs),
    tap(ping),
    switchMap((lastHeardMs) =>
      after(Math.min(idleTimeoutMs, MAX_ANSWER_MS)).pipe(filter(() => heardAtMs() === lastHeardMs)),
    ),
  );
  return idleTimeoutMs === 0 ? NEVER : check$.pipe(repeat(), take(1));
};
