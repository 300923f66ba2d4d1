import { Logger } from '@nestjs/common';
import { BehaviorSubject, defer, type MonoTypeOperatorFunction, pipe, tap } from 'rxjs';
import { type ConnectionStatus, isSameStatus, statusOf, stoppedBy } from '../operators/connection-status.js';
import type { Freshness } from '../operators/freshness.js';
import { FeedWatch } from '../operators/items/feed-watch.js';
import { logEvents } from '../operators/log-events.js';
import { metricsOf } from '../otel/feed-metrics.js';
import type { ClusterOwner, RelayGate } from '../otel/index.js';
import type { ClusterEvent, FeedEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import { invalidOption } from '../protocol/validate.js';
import type { RelayActivity, RelayRefusal } from '../relay/index.js';
import { refusals as answers } from '../relay/refusals.js';
import loadTelemetry from './load-telemetry.cjs';

/** Writes the log of a feed. The context is `TradeFeed`, plus the name of the feed if it has one. */
export class FeedLog {
  readonly logger: Logger;

  constructor(name: string | undefined) {
    this.logger = new Logger(name === undefined ? 'TradeFeed' : `TradeFeed:${name}`);
  }

  /** Logs like `logEvents`, plus the stack of the application's own exceptions, and why the feed closes. */
  feed(): MonoTypeOperatorFunction<FeedEvent | ClusterEvent> {
    return pipe(
      logEvents(this.logger, { level: 'info' }),
      tap({
        // The stack of a `TradeFeedError` leads into this library only.
        error: (error: unknown) => {
          if (!(error instanceof TradeFeedError)) this.#exception('An exception stopped the feed', error);
        },
        complete: () => this.logger.log('Closed: the application shuts down'),
        unsubscribe: () => this.logger.log('Closed: there is no subscriber'),
      }),
    );
  }

  freshness(state: Freshness): void {
    if (state.state === 'fresh') return this.logger.log('Frames arrive again');
    const { newestAt, maxAgeMs } = state;
    const newest = newestAt === undefined ? undefined : `The newest frame is from ${new Date(newestAt).toISOString()}`;
    this.logger.warn(`${newest ?? 'No frame has arrived yet'}: older than ${Math.round(maxAgeMs)} ms`);
  }

  client(event: RelayActivity): void {
    const { logger } = this;
    switch (event.type) {
      case 'client-joined':
        return logger.debug(`Client ${event.client} joined (${event.joined})`);
      case 'client-left':
        return logger.debug(`Client ${event.client} left: ${event.sent} frames sent, ${event.missed} missed`);
      case 'client-stuck':
        return logger.warn(`Client ${event.client} doesn't read: its connection is closed`);
      case 'client-behind':
        return logger.warn(`Client ${event.client} reads too slowly: ${event.missed} frames missed`);
      case 'source-stopped':
        // The feed's log reports it.
        return undefined;
      case 'topic-stopped':
        return this.#exception('A topic of `select` stopped', event.error);
      case 'client-failed':
        return this.#exception('A client received 500, relay-failed', event.error);
      case 'replay-failed':
        return this.#exception(`Client ${event.client} got a gap, because the log can't be read`, event.error);
      case 'client-refused':
        return logger.warn(`A client was refused, ${answers[event.reason].code}: ${refusals[event.reason]}`);
    }
  }

  #exception(what: string, error: unknown): void {
    this.logger.error(`${what}: ${String(error)}`, (error as Partial<Error> | undefined)?.stack);
  }
}

const refusals: Readonly<Record<RelayRefusal, string>> = {
  full: '`relay.maxClients` is reached',
  user: '`relay.maxClientsPerUser` is reached for its user',
  closed: 'the relay is closed',
  'authorize-timeout': 'its authorization took too long',
  'session-ended': 'the session of its user has ended',
  topics: '`relay.maxTopics` is reached',
};

/** The feed has no subscriber, so there is no connection. */
export interface Idle {
  readonly state: 'idle';
  /** When this status began, in epoch ms. */
  readonly since: number;
}

/** The status of the feed of a module. */
export type FeedStatus = ConnectionStatus | Idle;

export class FeedMemory {
  readonly status$ = new BehaviorSubject<FeedStatus>({ state: 'idle', since: Date.now() });
  #watch: FeedWatch | undefined;

  /** What the feed is waiting for, and for how long; `undefined` if nothing has subscribed. */
  get watch(): FeedWatch | undefined {
    return this.#watch;
  }

  /** Returns the events that describe the feed's current status. A relay must receive them first. */
  get snapshot(): readonly FeedEvent[] {
    return this.#watch?.feed.snapshotAt(Date.now()) ?? [];
  }

  /** Returns what a late subscriber must know: see `FeedFollower`. */
  get joined(): readonly FeedEvent[] {
    return this.#watch?.feed.joinedAt(Date.now()) ?? [];
  }

  /** Follows one subscription of the feed. Forwards the events unchanged. */
  track(): MonoTypeOperatorFunction<FeedEvent> {
    return (source) =>
      defer(() => {
        const watch = new FeedWatch();
        this.#watch = watch;
        // A replica of a cluster emits nothing before it follows an owner.
        if (this.status$.value.state === 'idle') this.status$.next({ state: 'connecting', since: Date.now() });
        return source.pipe(
          tap({
            next: (event) => {
              if (event.type === 'frame') return watch.item(event);
              watch.event(event);
              // The error that follows changes the status: by then, a subscriber can restart the feed.
              if (event.type !== 'stopped') this.#setStatus(statusOf(watch.state));
            },
            error: (error: unknown) => this.status$.next(stoppedBy(error)),
            finalize: () => {
              watch.end();
              this.#watch = undefined;
              if (this.status$.value.state !== 'stopped') this.status$.next({ state: 'idle', since: Date.now() });
            },
          }),
        );
      });
  }

  #setStatus(status: ConnectionStatus | undefined): void {
    const { value: before } = this.status$;
    if (status === undefined || (status.state === 'connecting' && before.state === 'connecting')) return;
    if (before.state === 'idle' || !isSameStatus(status, before)) this.status$.next(status);
  }
}

interface MeasuredFeed {
  readonly feed: Feed;
  readonly name: string | undefined;
  readonly cluster?: ClusterOwner | undefined;
  readonly relay?: RelayGate | undefined;
}

/** Measures with the global meter and tracer that the application registered when it started the SDK. */
export const telemetry = (
  { feed, name, cluster, relay }: MeasuredFeed,
  load = loadTelemetry,
): MonoTypeOperatorFunction<FeedEvent | ClusterEvent> => {
  let api: ReturnType<typeof loadTelemetry>;
  try {
    api = load();
  } catch {
    throw invalidOption('telemetry', 'false, unless the package @opentelemetry/api is installed');
  }
  const [meter, tracer] = [api.metrics.getMeter('rx-trade-feed'), api.trace.getTracer('rx-trade-feed')];
  const attributes = name === undefined ? {} : { 'trade_feed.name': name };
  return metricsOf({ meter, tracer, attributes, cluster, relay }, feed);
};
