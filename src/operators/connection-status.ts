import { catchError, concat, defer, distinctUntilChanged, filter, map, type Observable, of, throwError } from 'rxjs';
import { failureOf, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { failureIn, type FeedState } from '../protocol/feed-state.js';
import { FeedFollower } from './items/follow-feed.js';

/** The first attempt is in progress: no connection has opened since you subscribed. */
export interface ConnectingStatus {
  readonly state: 'connecting';
  /** When the attempt began, in epoch ms; if you subscribed later, the time of the first event you saw. */
  readonly since: number;
}

/** A connection is open. */
export interface LiveStatus {
  readonly state: 'live';
  /** When the connection opened, in epoch ms; if you subscribed later, the time of the first frame you saw. */
  readonly since: number;
  /** The number of the connection: 1, 2, … */
  readonly connection: number;
}

/** The connection is down: another attempt is in progress, or about to begin. */
export interface ReconnectingStatus {
  readonly state: 'reconnecting';
  /** When the last connection ended, in epoch ms; if none ever opened, when the first attempt ended. */
  readonly since: number;
  /** When the next attempt begins, in epoch ms; `undefined` while an attempt is in progress. */
  readonly nextAttemptAt: number | undefined;
  /** Counts attempts since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** The failure that ended the last attempt; `undefined` if it ended before you subscribed. */
  readonly failure: TradeFeedError | undefined;
}

/** The feed has stopped and won't reconnect. The Observable errors next. */
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
 * source. If you `retry` before this operator, `stopped` turns into `reconnecting`, or into `connecting` if nothing was
 * open before. Memory: the current status.
 *
 * It only knows the events since you subscribed: subscribe late to a shared feed, and you get no status until the next
 * event or frame, and a `since` that's too late in an outage. So subscribe together with the feed, and share the
 * status: `feed$.pipe(connectionStatus(), shareReplay({ bufferSize: 1, refCount: true }))`.
 * ```ts
 * // t: ticket-requested, o: opened, f: frame, d: disconnected, r: reconnecting
 * // C: connecting, L: live, R: reconnecting
 * // source              --t--o--f--f--(dr)--t--o--
 * // connectionStatus()  --C--L--------R-----R--L--
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
      // Some errors have no event before them, such as those of `append`, and they stop the feed as well.
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

/** Returns `undefined` before the first event, and between `disconnected` and `reconnecting`. */
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
    // A replica that gets no messages doesn't connect anywhere itself, so no `reconnecting` follows.
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
