import type { BeforeApplicationShutdown, MessageEvent, OnApplicationBootstrap } from '@nestjs/common';
import type { Writable } from 'node:stream';
import {
  AsyncSubject,
  catchError,
  connect,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  finalize,
  identity,
  ignoreElements,
  map,
  merge,
  type MonoTypeOperatorFunction,
  NEVER,
  noop,
  Observable,
  ReplaySubject,
  share,
  switchMap,
  takeUntil,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { clusterOf, type FeedCluster } from '../cluster/feed-cluster.js';
import { callPlace, useAccount } from '../feed/accounts.js';
import { resolveTicketOptions } from '../feed/options.js';
import { feedEvents$ } from '../feed/trade-feed.js';
import { feedStats, type FeedStats } from '../operators/feed-stats.js';
import { frames } from '../operators/frames.js';
import { type Freshness, freshness as freshnessOf, type FreshnessOptions } from '../operators/freshness.js';
import type { FeedWatch } from '../operators/items/feed-watch.js';
import { shareFeed } from '../operators/share-feed.js';
import { type ClusterEvent, type FeedEvent, isClusterEvent } from '../protocol/event.js';
import type { Frame } from '../protocol/frame.js';
import { waitForClose } from '../relay/http.js';
import { createRelay, type Relay } from '../relay/index.js';
import { moduleSettings, type TradeFeedModuleOptions } from './module-options.js';
import { FeedLog, FeedMemory, type FeedStatus, telemetry } from './observers.js';
import { sseMessages, type SseOptions, type SseRequest } from './sse.js';

/**
 * The feed of a module: one connection for all code that injects it.
 *
 * All Observables share one subscription. It begins with their first subscriber, or at bootstrap with `connect:
 * 'bootstrap'`. It ends `share.lingerMs` after the last subscriber has left. The Observables complete when the
 * application shuts down.
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
   * Emits the frames and the lifecycle events, in order. Errors with the failure that stopped the feed. A subscription
   * after that restarts the feed with a new ticket.
   */
  readonly events$: Observable<FeedEvent>;
  /** Emits the frames. Errors and restarts like `events$`. */
  readonly frames$: Observable<Frame>;
  /**
   * Emits the current status first, then each change. A subscription opens the connection, but does not restart a feed
   * that has stopped. Never errors: a stop is a status.
   */
  readonly status$: Observable<FeedStatus>;
  /**
   * Emits the figures of each period, and totals since the first subscriber. A later subscriber receives the latest
   * figures at once. Errors with the failure that stopped the feed, and does not restart it.
   */
  readonly stats$: Observable<FeedStats>;
  /** Forwards the feed to browsers. A controller uses it through {@link TradeFeed.sse}. */
  readonly relay: Relay;
  /** The cluster, for its `status`; `undefined` without the option `cluster`. */
  readonly cluster: FeedCluster | undefined;

  readonly #log: FeedLog;
  readonly #memory = new FeedMemory();
  readonly #closed$ = new AsyncSubject<void>();
  /** What a shutdown waits for: connections that are closing, and responses to browsers that are being sent. */
  readonly #closing = new Set<Promise<void>>();
  readonly #responses = new Set<Writable>();
  readonly #atBootstrap: boolean;
  readonly #useAccount: () => () => void;
  #freshness: Freshness | undefined;

  /**
   * @param options - the options of the module
   * @param name - the name of the feed in the log
   * @throws TradeFeedError with code `invalid-options`, also when neither the options nor the environment have an
   *   address and a key
   */
  constructor(options: TradeFeedModuleOptions, name?: string);
  /** @internal `where` is the place in the program that created the feed, for the log. */
  constructor(options: TradeFeedModuleOptions, name: string | undefined, where: string);
  constructor(options: TradeFeedModuleOptions, name?: string, where = `new TradeFeed at ${callPlace()}`) {
    const { feed, settings, cluster, connect: when, ...more } = moduleSettings(options);
    this.#log = new FeedLog(name);
    this.#atBootstrap = (when ?? (cluster ? 'bootstrap' : 'first-subscriber')) === 'bootstrap';
    const warn = (text: string): void => this.#log.logger.warn(text);
    const user = { where: `the feed ${name ?? feed} (${where})`, warn, group: this };
    let source$: Observable<FeedEvent | ClusterEvent>;
    if (cluster) {
      this.cluster = clusterOf(feed, { ...settings, ...cluster }, user);
      source$ = this.cluster.events$;
      // Replicas share an account: that is what they are for.
      this.#useAccount = () => noop;
    } else {
      const feedSettings = resolveTicketOptions(settings);
      source$ = feedEvents$(feed, feedSettings, { user, onClosing: (closed) => this.#addClosing(closed) });
      this.#useAccount = () => useAccount(feedSettings, user).end;
    }

    const begin$ = defer(() => {
      // A relay does not restart automatically after a stop.
      if (this.status.state === 'stopped') this.relay.restart();
      return source$.pipe(takeUntil(this.#closed$));
    });
    // The relay exists when the meter collects, not yet here.
    const relayGate = { status: () => this.relay.status() };
    const measured = { feed, name, cluster: this.cluster, relay: relayGate };
    this.events$ = begin$.pipe(
      // The log is the first operator: a subscriber of the status may unsubscribe while it is notified.
      this.#log.feed(),
      more.telemetry === true ? telemetry(measured) : identity,
      // The status of the cluster shows the owner.
      filter((event): event is FeedEvent => !isClusterEvent(event)),
      more.freshness ? this.#trackFreshness(more.freshness) : identity,
      this.#memory.track(),
      shareFeed(more.share),
    );
    this.frames$ = this.events$.pipe(frames());
    const open$ = this.#unlessStopped$(this.events$).pipe(
      ignoreElements(),
      catchError(() => NEVER),
    );
    this.status$ = merge(open$, this.#memory.status$).pipe(takeUntil(this.#closed$));
    this.stats$ = this.#unlessStopped$(this.events$.pipe(feedStats(more.stats))).pipe(
      share({ connector: () => new ReplaySubject(1) }),
    );
    // The relay may subscribe while the feed is open, or in an outage: its clients need that status first.
    const withSnapshot$ = defer(() => merge(this.#memory.snapshot, this.#unlessStopped$(this.events$)));
    this.relay = createRelay(withSnapshot$, { ...more.relay, cluster: this.cluster });
    this.relay.events$.subscribe((event) => this.#log.client(event));
  }

  /** Returns the current status. Opens no connection. */
  get status(): FeedStatus {
    return this.#memory.status$.value;
  }

  /**
   * Returns whether the newest frame is too old, as of the last change; `undefined` while all frames have arrived in
   * time, without a subscriber, and without the option `freshness`.
   */
  get freshness(): Freshness | undefined {
    return this.#freshness;
  }

  /** @internal What the feed waits for, and for how long, for the health. */
  get watch(): FeedWatch | undefined {
    return this.#memory.watch;
  }

  /**
   * Restarts a feed that has stopped, with a new ticket, for later subscribers and browsers. Keeps the feed subscribed
   * until it is open. Does nothing while the feed has not stopped. A person should decide: after `connection-replaced`
   * it closes the other client's connection.
   *
   * In a cluster it also allows the other replicas to connect again. Each of them that has stopped needs a restart,
   * too.
   */
  restart(): void {
    if (this.status.state !== 'stopped') return;
    if (this.cluster === undefined) return this.#restart();
    this.cluster.resume().then(
      () => this.#restart(),
      (error: unknown) => this.#log.logger.error(`Can't restart: the cluster's engine didn't answer: ${String(error)}`),
    );
  }

  /**
   * Returns the stream for one browser, for a handler of `@Sse()`. The page reads it with `relayFeed$` of
   * `rx-trade-feed/browser`, or with an `EventSource`. A browser that reconnects resumes after its last message. A
   * browser that does not read does not delay others.
   *
   * Protect the route with a guard: without `authorize` the answer is 500. A page of another origin receives 403,
   * unless `allowOrigins` names the origin; `HEAD` receives 405. When `relay.maxClients` is reached, or
   * `relay.maxClientsPerUser` for this `user`, the answer is 503 with `Retry-After`. A pipelined request, sent before
   * the previous response on its connection was complete, receives 400.
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
    return sseMessages(this.relay, request, options, (response) => this.#addResponse(response));
  }

  /**
   * Opens the connection with `connect: 'bootstrap'`, and warns of another feed with the same account. Nest calls it.
   */
  onApplicationBootstrap(): void {
    this.#closed$.subscribe(this.#useAccount());
    // The log and the status report a stop.
    if (!this.#atBootstrap) return;
    this.events$.subscribe({ error: noop });
    if (this.cluster) this.#holdLog();
  }

  /**
   * Closes the connection, ends the responses to browsers with the message `connect-again`, and closes their
   * connections. Waits until all are closed: about a second at most, or three seconds for a worker. Nest calls it after
   * `onModuleDestroy` of the application's services, and before it waits for open responses. In a cluster it first
   * gives the ownership to another replica, which takes `cluster.handOverMs` at most.
   */
  async beforeApplicationShutdown(): Promise<void> {
    // The relay closes first: browsers must reconnect, to another replica or after the restart, instead of seeing the
    // end of the feed.
    this.relay.close();
    await this.cluster?.handOver();
    this.#closed$.next();
    this.#closed$.complete();
    // The transport limits how long a connection takes.
    await Promise.all([...this.#closing, ...Array.from(this.#responses, waitForClose)]);
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

  #trackFreshness(options: FreshnessOptions): MonoTypeOperatorFunction<FeedEvent> {
    const set = (state: Freshness): void => {
      this.#freshness = state;
      this.#log.freshness(state);
    };
    return (source) =>
      source.pipe(
        // The events have the same error.
        connect((events$) =>
          merge(
            events$.pipe(
              freshnessOf(options),
              tap(set),
              ignoreElements(),
              catchError(() => EMPTY),
            ),
            events$,
          ),
        ),
        finalize(() => (this.#freshness = undefined)),
      );
  }

  /** Opens no connection after a stop. */
  #unlessStopped$<T>(source: Observable<T>): Observable<T> {
    return defer(() => {
      const { status } = this;
      return status.state === 'stopped' ? throwError(() => status.failure) : source;
    });
  }

  #addClosing(closed: Promise<void>): void {
    this.#closing.add(closed);
    void closed.then(() => this.#closing.delete(closed));
  }

  #addResponse(response: Writable): void {
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
  }
}
