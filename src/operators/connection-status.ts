import { distinctUntilChanged, filter, map, type Observable, scan } from 'rxjs';
import type { LifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failure.js';
import { frameOf, isLifecycle, timeOf } from './stream/item.js';

/** An attempt goes on, and no end of a connection was seen here. */
export interface Connecting {
  readonly state: 'connecting';
  /** When it began, in epoch ms; for one that had begun before, its first event seen here. */
  readonly since: number;
}

/** A connection is open: frames come when the service has some. */
export interface Live {
  readonly state: 'live';
  /** When it was opened, in epoch ms; for one that was already open, its first frame seen here. */
  readonly since: number;
  /** Which connection: 1, 2, … */
  readonly connection: number;
}

/** There is no connection: another attempt is waited for, or goes on. */
export interface ReconnectingStatus {
  readonly state: 'reconnecting';
  /** When the last connection ended, or, if there was none, the first attempt, in epoch ms. */
  readonly since: number;
  /** When the next attempt begins, in epoch ms; `undefined` while an attempt goes on. */
  readonly nextAttemptAt: number | undefined;
  /** Which reconnect this is since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** What ended the last attempt; `undefined` for one that was not seen here. */
  readonly failure: TradeFeedError | undefined;
}

/** How it stands with the connection. */
export type ConnectionStatus = Connecting | Live | ReconnectingStatus;

/**
 * Tells how it stands with the connection: `connecting`, `live`, or `reconnecting` with since when and the next attempt.
 *
 * Emits each status once when it begins. Errors with what stopped the feed, and completes with the source. Holds the status alone.
 *
 * It knows what it has seen. Over a shared feed, a late subscriber hears nothing until the first event or frame, which can take long
 * on a quiet feed; in an outage it then hears `connecting` or `reconnecting`, with a `since` that is too late. So subscribe it with the
 * feed, and share it: `feed$.pipe(connectionStatus(), shareReplay({ bufferSize: 1, refCount: true }))`.
 *
 * ```ts
 * // source                --ticket-requested--opened--frame--frame--disconnected+reconnecting--ticket-requested--opened--
 * // connectionStatus()    --connecting--------live------------------reconnecting---------------reconnecting------live----
 * ```
 *
 * @example
 * ```ts
 * import { connectionStatus, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(connectionStatus())
 *   .subscribe((status) => {
 *     if (status.state === 'reconnecting' && status.nextAttemptAt !== undefined)
 *       console.log(`next attempt in ${status.nextAttemptAt - Date.now()} ms`);
 *   });
 * ```
 */
export const connectionStatus = (): ((source: Observable<unknown>) => Observable<ConnectionStatus>) => (source) =>
  source.pipe(
    scan(next, {} as Known),
    map(({ status }) => status),
    filter((status) => status !== undefined),
    distinctUntilChanged(),
  );

interface Known {
  readonly status?: ConnectionStatus;
  /** What ended the last attempt, and when the feed was last open. */
  readonly failure?: TradeFeedError;
  readonly downSince?: number;
}

const next = (known: Known, event: unknown): Known => {
  if (isLifecycle(event)) return afterEvent(known, event);
  return known.status?.state === 'live' ? known : { status: liveBy(event) };
};

const afterEvent = (known: Known, event: LifecycleEvent): Known => {
  const { status, failure, downSince } = known;
  switch (event.type) {
    case 'ticket-requested':
    case 'ticket-issued':
      return { ...known, status: attempting(status, event.at) };
    case 'opened':
      return { status: { state: 'live', since: event.at, connection: event.connection } };
    case 'disconnected':
      return { ...known, failure: event.failure, downSince: downSince ?? event.failure.endedAt };
    case 'reconnecting': {
      const { at, attempt, delayMs } = event;
      const nextAttemptAt = at + delayMs;
      return { ...known, status: { state: 'reconnecting', since: downSince ?? at, nextAttemptAt, attempt, failure } };
    }
    case 'gap':
      return known;
  }
};

const attempting = (status: ConnectionStatus | undefined, at: number): ConnectionStatus => {
  if (status === undefined) return { state: 'connecting', since: at };
  return status.state === 'reconnecting' && status.nextAttemptAt !== undefined
    ? { ...status, nextAttemptAt: undefined }
    : status;
};

const liveBy = (item: unknown): Live => ({
  state: 'live',
  since: timeOf(item) ?? Date.now(),
  connection: frameOf(item)?.connection ?? 1,
});
