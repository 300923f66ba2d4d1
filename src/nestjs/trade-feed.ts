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
import { contextHere, inOwnContext, runIn, shareIn } from '../operators/items/async-context.js';
import type { FeedWatch } from '../operators/items/feed-watch.js';
import { shareConnection } from '../operators/share-feed.js';
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
 * All its Observables share one subscription, from the first subscriber (or from bootstrap, with `connect:
 * 'bootstrap'`) until `share.lingerMs` after the last one has left. They complete when the application shuts down.
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
   * Emits frames and lifecycle events, in order. Errors with the failure that stopped the feed. Subscribing after that
   * restarts the feed with a new ticket.
   */
  readonly events$: Observable<FeedEvent>;
  /** Emits frames. Errors and restarts like `events$`. */
  readonly frames$: Observable<Frame>;
  /**
   * Emits the current status first, then each change. Subscribing opens the connection, but doesn't restart a feed that
   * has stopped. Never errors: `stopped` is a status.
   */
  readonly status$: Observable<FeedStatus>;
  /**
   * Emits the figures of each period, and totals since the first subscriber. Later subscribers get the latest figures
   * at once. Errors with the failure that stopped the feed; subscribing doesn't restart it.
   */
  readonly stats$: Observable<FeedStats>;
  /** Forwards the feed to browsers. Controllers call {@link TradeFeed.sse} instead. */
  readonly relay: Relay;
  /** The cluster, for its `status`; `undefined` unless the option `cluster` is set. */
  readonly cluster: FeedCluster | undefined;

  readonly #log: FeedLog;
  readonly #memory = new FeedMemory();
  readonly #closed$ = new AsyncSubject<void>();
  /** What a shutdown waits for: connections that are still closing, and responses to browsers that aren't complete. */
  readonly #closing = new Set<Promise<void>>();
  readonly #responses = new Set<Writable>();
  /** The context of the module: its feed isn't part of the request that uses it first, restarts it or closes it. */
  readonly #home = contextHere();
  readonly #atBootstrap: boolean;
  readonly #useAccount: () => () => void;
  #freshness: Freshness | undefined;

  /**
   * @param options - the options of the module
   * @param name - the name of the feed in the log
   * @throws TradeFeedError with code `invalid-options`, for example when neither the options nor the environment have
   *   an address and a key
   */
  constructor(options: TradeFeedModuleOptions, name?: string);
  /** @internal `where`: where the program created the feed, for the log. */
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
      // Replicas share an account on purpose.
      this.#useAccount = () => noop;
    } else {
      const feedSettings = resolveTicketOptions(settings);
      source$ = feedEvents$(feed, feedSettings, { user, onClosing: (closed) => this.#addClosing(closed) });
      this.#useAccount = () => useAccount(feedSettings, user).end;
    }

    const begin$ = defer(() => {
      // A relay doesn't restart a feed that has stopped.
      if (this.status.state === 'stopped') this.relay.restart();
      return source$.pipe(takeUntil(this.#closed$));
    });
    // The relay doesn't exist yet, but it will when the meter collects.
    const relayGate = { status: () => this.relay.status() };
    const measured = { feed, name, cluster: this.cluster, relay: relayGate };
    const shared$ = begin$.pipe(
      // The log comes first, because a subscriber of the status may unsubscribe while it's being notified.
      this.#log.feed(),
      more.telemetry === true ? telemetry(measured) : identity,
      // The cluster's status names the owner.
      filter((event): event is FeedEvent => !isClusterEvent(event)),
      more.freshness ? this.#trackFreshness(more.freshness) : identity,
      this.#memory.track(),
      shareConnection(more.share),
    );
    this.events$ = defer(() => merge(this.#memory.joined, shared$));
    this.frames$ = this.events$.pipe(frames());
    const open$ = this.#unlessStopped$(this.events$).pipe(
      ignoreElements(),
      catchError(() => NEVER),
    );
    const status$ = merge(open$, this.#memory.status$).pipe(takeUntil(this.#closed$));
    this.status$ = status$.pipe(inOwnContext());
    this.stats$ = this.#unlessStopped$(this.events$.pipe(feedStats(more.stats))).pipe(
      shareIn(this.#home, { connector: () => new ReplaySubject(1) }),
    );
    // The relay may subscribe when the feed is already open, or in an outage: its clients need that status first.
    const withSnapshot$ = defer(() => merge(this.#memory.snapshot, this.#unlessStopped$(shared$)));
    this.relay = createRelay(withSnapshot$, { ...more.relay, cluster: this.cluster });
    this.relay.events$.subscribe((event) => this.#log.client(event));
  }

  /** Returns the current status. Opens no connection. */
  get status(): FeedStatus {
    return this.#memory.status$.value;
  }

  /**
   * Returns whether the newest frame is too old, as of the last change; `undefined` while frames arrive in time, while
   * nothing has subscribed, or if `freshness` isn't set.
   */
  get freshness(): Freshness | undefined {
    return this.#freshness;
  }

  /** @internal What the feed is waiting for, and for how long: for the health indicator. */
  get watch(): FeedWatch | undefined {
    return this.#memory.watch;
  }

  /**
   * Restarts a feed that has stopped, with a new ticket, for later subscribers and browsers. Keeps the feed subscribed
   * until it's open. Does nothing unless the feed has stopped. A person should decide: after `connection-replaced` it
   * kicks out the other client.
   *
   * In a cluster it also allows the other replicas to connect again, but each of them that has stopped needs its own
   * restart.
   */
  restart(): void {
    if (this.status.state !== 'stopped') return;
    if (this.cluster === undefined) return this.#restart();
    const failed = (error: unknown): void =>
      this.#log.logger.error(`Can't restart: the cluster's engine didn't answer: ${String(error)}`);
    this.cluster.resume().then(() => this.#restart(), failed);
  }

  /**
   * Returns the stream for one browser: return it from a handler of `@Sse()`. The page reads it with `relayFeed$` of
   * `rx-trade-feed/browser`, or with an `EventSource`. A browser that reconnects resumes after its last message. A
   * browser that doesn't read doesn't hold up the others.
   *
   * Protect the route with a guard: if `authorize` is missing, the answer is 500. A page of another origin gets 403
   * unless `allowOrigins` names it, and `HEAD` gets 405. When `relay.maxClients` is reached, or
   * `relay.maxClientsPerUser` for this `user`, the answer is 503 with `Retry-After`. A pipelined request, sent before
   * the previous response on its connection was complete, gets 400.
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
   * Opens the connection if `connect` is `'bootstrap'`, and warns if another feed uses the same account. Nest calls it.
   */
  onApplicationBootstrap(): void {
    this.#closed$.subscribe(this.#useAccount());
    // The log and the status report it if the feed stops.
    if (!this.#atBootstrap) return;
    this.events$.subscribe({ error: noop });
    if (this.cluster) this.#holdLog();
  }

  /**
   * Closes the connection, ends the responses to browsers with the message `connect-again`, and closes their
   * connections. Waits until all are closed: about a second at most, or three seconds for a worker. Nest calls it after
   * `onModuleDestroy` of the application's services, and before it waits for open responses. In a cluster it first
   * hands the connection over to another replica, which takes at most `cluster.handOverMs`.
   */
  beforeApplicationShutdown(): Promise<void> {
    return runIn(this.#home, () => this.#close());
  }

  async #close(): Promise<void> {
    // Closes the relay first: browsers must reconnect, to another replica or after the restart, rather than see the
    // feed end.
    this.relay.close();
    await this.cluster?.handOver();
    this.#closed$.next();
    this.#closed$.complete();
    // The transport limits how long closing a connection takes.
    await Promise.all([...this.#closing, ...Array.from(this.#responses, waitForClose)]);
  }

  #restart(): void {
    const untilOpen$ = this.events$.pipe(takeWhile(({ type }) => type !== 'opened'));
    // The log and the status report it if the feed stops again.
    runIn(this.#home, () => untilOpen$.subscribe({ error: noop }));
  }

  // Lets pages of other replicas continue here. A restart gives the relay a new log.
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
        // The events report the same error.
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

  /** Subscribes unless the feed has stopped, so it never restarts one. */
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
