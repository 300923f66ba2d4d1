import type { BeforeApplicationShutdown, Logger, MessageEvent, OnApplicationBootstrap } from '@nestjs/common';
import {
  AsyncSubject,
  catchError,
  defer,
  distinctUntilChanged,
  filter,
  identity,
  ignoreElements,
  map,
  merge,
} from 'rxjs';
import { NEVER, noop, Observable, ReplaySubject, share, switchMap, takeUntil, takeWhile, throwError } from 'rxjs';
import { callPlace } from '../accounts/call-place.js';
import type { FeedCluster } from '../cluster/index.js';
import { feedStats } from '../operators/feed-stats.js';
import { frames } from '../operators/frames.js';
import type { Freshness } from '../operators/freshness.js';
import { shareFeed } from '../operators/share-feed.js';
import type { FeedStats } from '../operators/items/feed-tally.js';
import type { FeedEvent, OwnerChanged } from '../protocol/event.js';
import type { Frame } from '../protocol/frame.js';
import { createRelay, type Relay } from '../relay/index.js';
import { logClients, logFeed, logFreshness, loggerOf, logSameAccount } from './feed-log.js';
import { FeedMemory } from './feed-memory.js';
import { createFeedSource } from './feed-source.js';
import type { FeedStatus } from './feed-status.js';
import { connectOf, moduleSettings, type TradeFeedModuleOptions } from './module-options.js';
import { PendingWork } from './pending-work.js';
import { lastEventIdOf, responseOf, type SseRequest } from './sse-request.js';
import { sseMessages$ } from './sse-messages.js';
import { requestCheck, type SseOptions } from './sse-options.js';
import { telemetry } from './telemetry.js';
import { trackFreshness } from './track-freshness.js';

/**
 * The feed of a module: one connection for all code that injects it.
 *
 * All Observables share one subscription. It begins with their first subscriber, or at bootstrap with `connect: 'bootstrap'`. It ends
 * `share.lingerMs` after the last subscriber has left. The Observables complete when the application shuts down.
 *
 * @example
 * ```ts
 * import { Injectable, type OnModuleInit } from '@nestjs/common';
 * import { TradeFeed } from 'rx-trade-feed/nestjs';
 *
 * @Injectable()
 * export class Printer implements OnModuleInit {
 *   constructor(private readonly tradeFeed: TradeFeed) {}
 *
 *   onModuleInit(): void {
 *     this.tradeFeed.frames$.subscribe({
 *       next: (frame) => console.log(frame.text()),
 *       error: () => console.log('no more frames'), // the log contains the reason
 *     });
 *   }
 * }
 * ```
 */
export class TradeFeed implements OnApplicationBootstrap, BeforeApplicationShutdown {
  /**
   * Emits the frames and the lifecycle events, in order. Errors with the failure that stopped the feed. A subscription after that
   * restarts the feed with a new ticket.
   */
  readonly events$: Observable<FeedEvent>;
  /** Emits the frames. Errors and restarts like `events$`. */
  readonly frames$: Observable<Frame>;
  /**
   * Emits the current status first, then each change. A subscription opens the connection, but does not restart a feed that has stopped.
   * Never errors: a stop is a status.
   */
  readonly status$: Observable<FeedStatus>;
  /**
   * Emits the figures of each period, and totals since the first subscriber. A later subscriber receives the latest figures at once. Errors
   * with the failure that stopped the feed, and does not restart it.
   */
  readonly stats$: Observable<FeedStats>;
  /** Forwards the feed to browsers. A controller uses it through {@link TradeFeed.sse}. */
  readonly relay: Relay;
  /** The cluster, for its `status`; `undefined` without the option `cluster`. */
  readonly cluster: FeedCluster | undefined;

  readonly #logger: Logger;
  readonly #memory = new FeedMemory();
  readonly #pending = new PendingWork();
  readonly #closed$ = new AsyncSubject<void>();
  #freshness: Freshness | undefined;
  readonly #atBootstrap: boolean;
  readonly #useAccount: () => () => void;

  /**
   * @param options - the options of the module
   * @param name - the name of the feed in the log
   * @throws TradeFeedError with code `invalid-options`, also when neither the options nor the environment have an address and a key
   */
  constructor(options: TradeFeedModuleOptions, name?: string);
  /** @internal `where` is the place in the program that created the feed, for the log. */
  constructor(options: TradeFeedModuleOptions, name: string | undefined, where: string);
  constructor(options: TradeFeedModuleOptions, name?: string, where = `new TradeFeed at ${callPlace()}`) {
    const settings = moduleSettings(options);
    const { feed, share: sharing, stats, freshness, relay } = settings;
    const logger = loggerOf(name);
    this.#logger = logger;
    const user = { where: `the feed ${name ?? feed} (${where})`, warn: logSameAccount(logger) };
    const source = createFeedSource(settings, user, (closed) => this.#pending.addClosing(closed));
    this.cluster = source.cluster;
    this.#useAccount = () => source.useAccount();

    const begin$ = defer(() => {
      // A relay does not restart automatically after a stop.
      if (this.status.state === 'stopped') this.relay.restart();
      return source.events$.pipe(takeUntil(this.#closed$));
    });
    // The log is the first operator: a subscriber of the status may unsubscribe while it is notified.
    const ofFeed$ = begin$.pipe(logFeed(logger), filter(isOfFeed));
    const logged$ = ofFeed$.pipe(settings.telemetry === true ? telemetry(name) : identity);
    const checked$ = freshness ? logged$.pipe(trackFreshness(freshness, this.#setFreshness(logger))) : logged$;
    this.events$ = checked$.pipe(this.#memory.track(), shareFeed(sharing));
    this.frames$ = this.events$.pipe(frames());
    this.status$ = defer(() => merge(this.#open$(), this.#memory.status$)).pipe(takeUntil(this.#closed$));
    const stats$ = this.events$.pipe(feedStats(stats));
    this.stats$ = defer(() => this.#unlessStopped$(stats$)).pipe(share({ connector: () => new ReplaySubject(1) }));
    // The relay may subscribe while the feed is open, or in an outage: its clients need that status first.
    const withSnapshot$ = defer(() => merge(this.#memory.snapshot, this.#unlessStopped$(this.events$)));
    this.relay = createRelay(withSnapshot$, { ...relay, cluster: this.cluster });
    this.relay.events$.subscribe(logClients(logger));
    this.#atBootstrap = connectOf(settings) === 'bootstrap';
  }

  /** Returns the current status. Opens no connection. */
  get status(): FeedStatus {
    return this.#memory.status$.value;
  }

  /**
   * Returns whether the newest frame is too old, as of the last change; `undefined` while all frames have arrived in time, without a subscriber, and
   * without the option `freshness`.
   */
  get freshness(): Freshness | undefined {
    return this.#freshness;
  }

  /**
   * Restarts a feed that has stopped, with a new ticket, for later subscribers and browsers. Keeps the feed subscribed until it is open.
   * Does nothing while the feed has not stopped. A person should decide: after `connection-replaced` it closes the other client's connection.
   *
   * In a cluster it also allows the other replicas to connect again. Each of them that has stopped needs a restart, too.
   */
  restart(): void {
    if (this.status.state !== 'stopped') return;
    if (this.cluster === undefined) return this.#restart();
    this.cluster.resume().then(
      () => this.#restart(),
      (error: unknown) =>
        this.#logger.error(`Cannot restart: the engine of the cluster did not answer: ${String(error)}`),
    );
  }

  /**
   * Returns the stream for one browser, for a handler of `@Sse()`. The page reads it with `relayFeed$` of `rx-trade-feed/browser`, or with an
   * `EventSource`. A browser that reconnects resumes after its last message. A browser that does not read does not delay others.
   *
   * Protect the route with a guard: without `authorize` the answer is 500. A page of another origin receives 403, unless `allowOrigins`
   * names the origin. When `relay.maxClients` is reached, or `relay.maxClientsPerUser` for this `user`, the answer is 503 with `Retry-After`.
   * A pipelined request, sent before the previous response on its connection was complete, receives 400.
   *
   * @param request - the request that `@Req()` injects, on Express and on Fastify
   * @param options - see {@link SseOptions}
   * @throws TradeFeedError with code `invalid-options`, from the call itself
   * @example
   * ```ts
   * import { Controller, Req, Sse } from '@nestjs/common';
   * import { type SseRequest, TradeFeed } from 'rx-trade-feed/nestjs';
   *
   * @Controller() // a guard of the application protects it
   * export class FeedController {
   *   constructor(private readonly tradeFeed: TradeFeed) {}
   *
   *   @Sse('feed')
   *   feed(@Req() request: SseRequest) {
   *     return this.tradeFeed.sse(request, { authorize: 'guard' });
   *   }
   * }
   * ```
   */
  sse(request: SseRequest, options: SseOptions): Observable<MessageEvent> {
    const check = requestCheck(request, options);
    const response = responseOf(request);
    return defer(() => {
      check();
      if (response) this.#pending.addResponse(response);
      const { user, select } = options;
      return sseMessages$(this.relay, { lastEventId: lastEventIdOf(request), user, select }, response);
    });
  }

  /** Opens the connection with `connect: 'bootstrap'`, and warns of another feed with the same account. Nest calls it. */
  onApplicationBootstrap(): void {
    this.#closed$.subscribe(this.#useAccount());
    // The log and the status report a stop.
    if (!this.#atBootstrap) return;
    this.events$.subscribe({ error: noop });
    if (this.cluster) this.#holdLog();
  }

  /**
   * Closes the connection, ends the responses to browsers with the message `connect-again`, and closes their connections. Waits until all are
   * closed: about a second at most, or three seconds for a worker. Nest calls it after `onModuleDestroy` of the application's services, and
   * before it waits for open responses. In a cluster it first gives the ownership to another replica, which takes `cluster.handOverMs` at most.
   */
  async beforeApplicationShutdown(): Promise<void> {
    // The relay closes first: browsers must reconnect, to another replica or after the restart, instead of seeing the end of the feed.
    this.relay.close();
    await this.cluster?.handOver();
    this.#closed$.next();
    this.#closed$.complete();
    await this.#pending.end();
  }

  #restart(): void {
    const untilOpen$ = this.events$.pipe(takeWhile(({ type }) => type !== 'opened'));
    // The log and the status report another stop.
    untilOpen$.subscribe({ error: noop });
  }

  // Pages of other replicas can continue here. After a restart the relay has a new log.
  #holdLog(): void {
    const isActive$ = this.#memory.status$.pipe(
      map(({ state }) => state !== 'stopped'),
      distinctUntilChanged(),
    );
    isActive$
      .pipe(
        switchMap((isActive) => (isActive ? new Observable(() => this.relay.hold()) : NEVER)),
        takeUntil(this.#closed$),
      )
      .subscribe();
  }

  #setFreshness(logger: Logger): (state: Freshness | undefined) => void {
    return (state) => {
      this.#freshness = state;
      if (state) logFreshness(logger, state);
    };
  }

  /** Keeps the connection open while it is subscribed to. Opens none after a stop. */
  #open$(): Observable<never> {
    return this.#unlessStopped$(this.events$).pipe(
      ignoreElements(),
      catchError(() => NEVER),
    );
  }

  #unlessStopped$<T>(source: Observable<T>): Observable<T> {
    const { status } = this;
    return status.state === 'stopped' ? throwError(() => status.failure) : source;
  }
}

// The status of the cluster shows the owner.
const isOfFeed = (event: FeedEvent | OwnerChanged): event is FeedEvent => event.type !== 'owner-changed';
