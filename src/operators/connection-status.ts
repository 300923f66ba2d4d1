import { distinctUntilChanged, filter, map, type Observable, scan } from 'rxjs';
import type { LifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { afterEvent, afterItem, noOutages, type Outages } from '../protocol/outage.js';
import { frameOf, isLifecycle, timeOf } from './items/item.js';

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

/** The feed has stopped: it does not reconnect, because that makes no sense. The error of the Observable follows. */
export interface StoppedStatus {
  readonly state: 'stopped';
  /** When it stopped, in epoch ms. */
  readonly since: number;
  /** The failure that stopped it. */
  readonly failure: TradeFeedError;
}

/** The status of the connection. */
export type ConnectionStatus = Connecting | Live | ReconnectingStatus | StoppedStatus;

/**
 * Reports the status of the connection: `connecting`, `live`, `reconnecting` with its begin and the next attempt, or `stopped`.
 *
 * Emits each status once when it begins. Errors with the failure that stopped the feed, after the status `stopped`, and completes with the
 * source. With a `retry` before this operator, `reconnecting` follows `stopped`. Holds the status alone.
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
    scan(next, { outages: noOutages } as Known),
    map(({ status }) => status),
    filter((status) => status !== undefined),
    distinctUntilChanged(),
  );

interface Known {
  readonly status?: ConnectionStatus;
  /** What ended the last attempt, while no connection is open. */
  readonly failure?: TradeFeedError;
  /** When the first of these attempts ended, in epoch ms. */
  readonly failedAt?: number;
  readonly outages: Outages;
}

const next = (known: Known, event: unknown): Known => {
  if (isLifecycle(event)) return afterLifecycle(known, event);
  if (known.status?.state === 'live') return known;
  const status = liveBy(event);
  return { status, outages: afterItem(known.outages, status.since) };
};

const afterLifecycle = (known: Known, event: LifecycleEvent): Known => {
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
      // The feed is subscribed to again. It was open, or its first attempt failed for good.
      if (current === undefined) return status.state === 'live' ? status : { state: 'connecting', since: at };
      return { state: 'reconnecting', since: current.from, nextAttemptAt: undefined, attempt: 1, failure };
    }
  }
};

const liveBy = (item: unknown): Live => ({
  state: 'live',
  since: timeOf(item) ?? Date.now(),
  connection: frameOf(item)?.connection ?? 1,
});
