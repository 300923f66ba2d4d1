import { distinctUntilChanged, filter, map, type Observable, scan } from 'rxjs';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, noOutages, type Outages } from '../protocol/outage.js';
import { frameOf, isLifecycle, timeOf } from './items/item.js';

/** The first attempt is in progress: no connection has been open since the subscription. */
export interface ConnectingStatus {
  readonly state: 'connecting';
  /** When the attempt began, in epoch ms. For an attempt that had begun before the subscription: the time of its first event here. */
  readonly since: number;
}

/** A connection is open. */
export interface LiveStatus {
  readonly state: 'live';
  /** When the connection was opened, in epoch ms. For a connection that was open before the subscription: the time of its first frame here. */
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
 * Emits the status of the connection: `connecting`, `live`, `reconnecting` with the time of the next attempt, or `stopped`.
 *
 * Emits each status once, when it begins. Errors with the failure that stopped the feed, after the status `stopped`. Completes with the
 * source. With a `retry` before this operator, `reconnecting` follows `stopped`, or `connecting` if no connection was open before.
 * Memory: the current status.
 *
 * The status depends on the events since the subscription. A late subscriber of a shared feed receives no status before the next event or frame,
 * which can take long on a quiet feed. In an outage, the first status is `connecting` or `reconnecting`, with a `since` that is too late. So
 * subscribe together with the feed, and share the status: `feed$.pipe(connectionStatus(), shareReplay({ bufferSize: 1, refCount: true }))`.
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
    scan(statusAfter, noStatus),
    map(({ status }) => status),
    filter((status) => status !== undefined),
    distinctUntilChanged(),
  );

/** The status, and the facts that the next one depends on. */
export interface KnownStatus {
  readonly status?: ConnectionStatus;
  /** The failure that ended the last attempt, while no connection is open. */
  readonly failure?: TradeFeedError;
  /** When the first attempt without a connection ended, in epoch ms. */
  readonly failedAt?: number;
  readonly outages: Outages;
}

/** Nothing is known before the first event. */
export const noStatus: KnownStatus = Object.freeze({ outages: noOutages });

/** Folds an event or an item into what is known. Pure. */
export const statusAfter = (known: KnownStatus, event: unknown): KnownStatus => {
  if (isLifecycle(event)) return afterLifecycle(known, event);
  if (known.status?.state === 'live') return known;
  const status = liveBy(event);
  return { status, outages: afterItem(known.outages, status.since) };
};

const afterLifecycle = (known: KnownStatus, event: ClusterLifecycleEvent): KnownStatus => {
  const outages = afterEvent(known.outages, event, (event as { readonly at?: number }).at);
  const { status, failure, failedAt } = known;
  const downSince = outages.current?.from ?? failedAt;
  switch (event.type) {
    case 'ticket-requested':
    case 'ticket-issued':
      return { ...known, outages, status: attempting(status, event.at, outages, failure) };
    case 'opened':
      return { outages, status: { state: 'live', since: event.at, connection: event.connection } };
    case 'disconnected':
      return { ...known, outages, failure: event.failure, failedAt: failedAt ?? event.failure.endedAt };
    case 'reconnecting': {
      const { at, attempt, delayMs } = event;
      const nextAttemptAt = at + delayMs;
      const waiting = { state: 'reconnecting', since: downSince ?? at, nextAttemptAt, attempt, failure } as const;
      return { ...known, outages, status: waiting };
    }
    case 'stopped':
      return {
        outages,
        failure: event.failure,
        status: { state: 'stopped', since: event.failure.endedAt, failure: event.failure },
      };
    case 'gap':
    case 'owner-changed':
    case 'watermark':
      return { ...known, outages };
  }
};

const attempting = (
  status: ConnectionStatus | undefined,
  at: number,
  { current }: Outages,
  failure: TradeFeedError | undefined,
): ConnectionStatus => {
  if (status === undefined) return { state: 'connecting', since: at };
  switch (status.state) {
    case 'connecting':
      return status;
    case 'reconnecting':
      return status.nextAttemptAt === undefined ? status : { ...status, nextAttemptAt: undefined };
    case 'live':
    case 'stopped': {
      // The feed was subscribed to again. Without an outage, no connection has been open: the first attempt stopped the feed.
      if (current === undefined) return status.state === 'live' ? status : { state: 'connecting', since: at };
      return { state: 'reconnecting', since: current.from, nextAttemptAt: undefined, attempt: 1, failure };
    }
  }
};

const liveBy = (item: unknown): LiveStatus => ({
  state: 'live',
  since: timeOf(item) ?? Date.now(),
  connection: frameOf(item)?.connection ?? 1,
});
