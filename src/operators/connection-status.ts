import { catchError, concat, defer, distinctUntilChanged, filter, map, type Observable, of, throwError } from 'rxjs';
import { failureOf, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { failureIn, type FeedState } from '../protocol/feed-state.js';
import { FeedFollower } from './items/follow-feed.js';

/** The first attempt is in progress: no connection has been open since the subscription. */
export interface ConnectingStatus {
  readonly state: 'connecting';
  /** When the attempt began, in epoch ms; if before the subscription, the time of its first event here. */
  readonly since: number;
}

/** A connection is open. */
export interface LiveStatus {
  readonly state: 'live';
  /** When the connection was opened, in epoch ms; if before the subscription, the time of its first frame here. */
  readonly since: number;
  /** The number of the connection: 1, 2, … */
  readonly connection: number;
}

/** There is no connection: another attempt is in progress, or will begin. */
export interface ReconnectingStatus {
  readonly state: 'reconnecting';
  /** When the last connection ended, in epoch ms; if there was none, when the first attempt ended. */
  readonly since: number;
  /** When the next attempt begins, in epoch ms; `undefined` while an attempt is in progress. */
  readonly nextAttemptAt: number | undefined;
  /** The number of the reconnect since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** The failure that ended the last attempt; `undefined` if the attempt ended before the subscription. */
  readonly failure: TradeFeedError | undefined;
}

/** The feed has stopped and does not reconnect. The Observable errors next. */
export interface StoppedStatus {
  readonly state: 'stopped';
  /** When the feed stopped, in epoch ms. */
  readonly since: number;
  /** The failure that stopped the feed. */
  readonly failure: TradeFeedError;
}

/** The status of the connection. */
export type ConnectionStatus = ConnectingStatus | LiveStatus | ReconnectingStatus | StoppedStatus;

/**
 * Emits the status of the connection: `connecting`, `live`, `reconnecting` with the time of the next attempt, or
 * `stopped`.
 *
 * Emits each status once, when it begins. Errors with the source, after the status `stopped`. Completes with the
 * source. With a `retry` before this operator, `reconnecting` follows `stopped`, or `connecting` if no connection was
 * open before. Memory: the current status.
 *
 * The status depends on the events since the subscription: a late subscriber of a shared feed has none before the next
 * event or frame, and in an outage a `since` that is too late. So subscribe together with the feed, and share the
 * status: `feed$.pipe(connectionStatus(), shareReplay({ bufferSize: 1, refCount: true }))`.
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
  defer(() => {
    const feed = new FeedFollower();
    return source.pipe(
      map((event) => feed.next(event)),
      // An error that no event announces, for example of `append`, stops the feed too.
      catchError((thrown: unknown) => {
        const errored = throwError(() => thrown);
        return feed.error(thrown) ? concat(of(feed.state), errored) : errored;
      }),
      distinctUntilChanged(),
      map(statusOf),
      filter((status) => status !== undefined),
      distinctUntilChanged(isSameStatus),
    );
  });

export const stoppedBy = (error: unknown): StoppedStatus => {
  const failure = failureOf(error);
  return { state: 'stopped', since: failure.endedAt, failure };
};

/** `undefined` before the first event, and between an end and its wait. */
export const statusOf = (state: FeedState): ConnectionStatus | undefined => {
  const { open, outage, events } = state;
  if (open !== undefined) return { state: 'live', since: open.at, connection: open.connection };
  const [first, last] = [events[0], events.at(-1)];
  if (last?.type === 'stopped') return stoppedBy(last.failure);
  const wait = events.find((event) => event.type === 'reconnecting');
  const failure = failureIn(state);
  const reconnecting = (since: number): ReconnectingStatus => ({
    state: 'reconnecting',
    since,
    nextAttemptAt: wait && wait === last ? wait.at + wait.delayMs : undefined,
    attempt: wait?.attempt ?? 1,
    failure,
  });
  if (last?.type === 'disconnected') {
    const { code, endedAt } = last.failure;
    // A replica without messages makes no attempt of its own, so no `reconnecting` follows.
    return code === 'cluster-away' || code === 'cluster-behind' ? reconnecting(outage?.from ?? endedAt) : undefined;
  }
  const began = first?.type === 'disconnected' ? first.failure.endedAt : undefined;
  const since = outage?.from ?? began ?? wait?.at;
  if (since !== undefined) return last && reconnecting(since);
  const attempt = events.find((event) => event.type === 'ticket-requested' || event.type === 'ticket-issued');
  return attempt && { state: 'connecting', since: attempt.at };
};

export const isSameStatus = (one: ConnectionStatus, other: ConnectionStatus): boolean => {
  const others: Readonly<Record<string, unknown>> = { ...other };
  return Object.entries(one).every(([name, value]) => others[name] === value);
};
