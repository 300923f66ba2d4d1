import type { BeforeApplicationShutdown, MessageEvent, OnApplicationBootstrap } from '@nestjs/common';
import type { Writable } from 'node:stream';
import { AsyncSubject, catchError, defer, ignoreElements, merge, noop } from 'rxjs';
import { NEVER, type Observable, ReplaySubject, share, takeUntil, takeWhile, throwError } from 'rxjs';
import { useAccount } from '../accounts/account-use.js';
import { callPlace } from '../accounts/call-place.js';
import { feedStats } from '../operators/feed-stats.js';
import { frames } from '../operators/frames.js';
import { shareFeed } from '../operators/share-feed.js';
import type { FeedStats } from '../operators/items/feed-tally.js';
import { resolveTicketOptions } from '../options.js';
import type { FeedEvent } from '../protocol/event.js';
import type { Frame } from '../protocol/frame.js';
import { waitForClose } from '../relay/http-response.js';
import { createRelay, type Relay } from '../relay/index.js';
import { feedEvents$ } from '../trade-feed.js';
import { logClients, logFeed, loggerOf, logSameAccount } from './feed-log.js';
import { FeedMemory } from './feed-memory.js';
import type { FeedStatus } from './feed-status.js';
import { moduleSettings, type TradeFeedModuleOptions } from './module-options.js';
import { lastEventIdOf, responseOf, type SseRequest } from './sse-request.js';
import { sseMessages$ } from './sse-messages.js';
import { admission, type SseOptions } from './sse-options.js';

/**
 * The feed of a module: one connection, for whoever injects it.
 *
 * All of its Observables come from one subscription, which begins with the first subscriber of any of them (or at bootstrap, if the
 * module is told so) and ends a while after the last one left. They complete when the application shuts down.
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
 *       error: () => console.log('no more frames'), // the log says why
 *     });
 *   }
 * }
 * ```
 */
export class TradeFeed implements OnApplicationBootstrap, BeforeApplicationShutdown {
  /**
   * The frames and what happens around them, in order. Errors with what stopped the feed; whoever subscribes after that lets the
   * feed begin again, with a new ticket.
   */
  readonly events$: Observable<FeedEvent>;
  /** The frames. Errors and begins again as `events$` does. */
  readonly frames$: Observable<Frame>;
  /**
   * How it stands: first how it does now, then each change. Opens the connection as the others do, but does not let a feed that stopped
   * begin again. Never errors: a stop is a status.
   */
  readonly status$: Observable<FeedStatus>;
  /**
   * The figures of each period, and totals since its first subscriber; a later one gets the newest figures at once. Errors with what stopped
   * the feed, and does not let it begin again.
   */
  readonly stats$: Observable<FeedStats>;
  /** What hands the feed on to browsers; {@link TradeFeed.sse} is the way to it from a controller. */
  readonly relay: Relay;

  readonly #memory = new FeedMemory();
  readonly #closed$ = new AsyncSubject<void>();
  readonly #atBootstrap: boolean;
  readonly #useAccount: () => () => void;
  readonly #responses = new Set<Writable>();
  readonly #releases = new Set<Promise<void>>();

  /**
   * @param options - those of the module
   * @param name - the name that the log gives the feed
   * @param where - the place in the program that made the feed, for the log @defaultValue the line that calls the constructor
   * @throws TradeFeedError with code `invalid-options`, also when neither the options nor the environment have an address and a key
   */
  constructor(options: TradeFeedModuleOptions, name?: string, where = `new TradeFeed at ${callPlace()}`) {
    const { feed, connect, share: sharing, stats, relay, settings } = moduleSettings(options);
    const logger = loggerOf(name);
    const user = { where: `the feed ${name ?? feed} (${where})`, warn: logSameAccount(logger) };
    const feedSettings = resolveTicketOptions(settings);
    this.#useAccount = () => useAccount(feedSettings, user);

    const feed$ = feedEvents$(feed, feedSettings, { user, onClosing: (closed) => this.#waitFor(closed) });
    const begin$ = defer(() => {
      // A relay does not begin again behind a stop by itself.
      if (this.status.state === 'stopped') this.relay.restart();
      return feed$.pipe(takeUntil(this.#closed$));
    });
    // The log first: whoever hears of the status may leave there and then.
    this.events$ = begin$.pipe(logFeed(logger), this.#memory.keep(), shareFeed(sharing));
    this.frames$ = this.events$.pipe(frames());
    this.status$ = defer(() => merge(this.#held$(), this.#memory.status$)).pipe(takeUntil(this.#closed$));
    const stats$ = this.events$.pipe(feedStats(stats));
    this.stats$ = defer(() => this.#unlessStopped$(stats$)).pipe(share({ connector: () => new ReplaySubject(1) }));
    // The relay may come to a feed that is open, or down, and has to tell its clients so.
    const withPresent$ = defer(() => merge(this.#memory.present, this.#unlessStopped$(this.events$)));
    this.relay = createRelay(withPresent$, relay);
    this.relay.events$.subscribe(logClients(logger));
    this.#atBootstrap = connect === 'bootstrap';
  }

  /** How it stands now. Opens nothing. */
  get status(): FeedStatus {
    return this.#memory.status$.value;
  }

  /**
   * Lets a feed that has stopped begin again, with a new ticket, for subscribers and browsers that come from now on; it is held until it is
   * open. Does nothing while it has not stopped.
   *
   * Let a person ask for it: after `connection-replaced` it evicts the other client in turn.
   */
  restart(): void {
    if (this.status.state !== 'stopped') return;
    const untilOpen$ = this.events$.pipe(takeWhile(({ type }) => type !== 'opened'));
    // Should it stop again, that is in the log, and in the status.
    untilOpen$.subscribe({ error: noop });
  }

  /**
   * Gives what a handler of `@Sse()` returns: the feed for one browser, which reads it with `relayFeed$` of `rx-trade-feed/browser`, or
   * with an `EventSource`. A browser that comes back goes on where it was. One that does not read holds nobody up.
   *
   * Let a guard decide who may read, and say so: without `authorize` nobody may. A page of another origin is answered with 403, unless it
   * is named here. When there are `relay.maxClients` already, or `relay.maxClientsPerUser` of this `user`, the answer is 503 with
   * `Retry-After`. A request that was sent before the answer to the one before it on its connection was complete gets a 400.
   *
   * @param request - what `@Req()` gives, on Express and on Fastify
   * @param options - see {@link SseOptions}
   * @throws TradeFeedError with code `invalid-options`, from the call itself
   * @example
   * ```ts
   * import { Controller, Req, Sse } from '@nestjs/common';
   * import { type SseRequest, TradeFeed } from 'rx-trade-feed/nestjs';
   *
   * @Controller() // behind a guard of the application
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
    const admit = admission(request, options);
    const response = responseOf(request);
    return defer(() => {
      admit();
      if (response) this.#keep(response);
      const { user, select } = options;
      return sseMessages$(this.relay, { lastEventId: lastEventIdOf(request), user, select }, response);
    });
  }

  /** Opens the connection, if the module was told to, and warns of another feed with the same account. Nest calls it. */
  onApplicationBootstrap(): void {
    this.#closed$.subscribe(this.#useAccount());
    // A stop is in the log, and in the status.
    if (this.#atBootstrap) this.events$.subscribe({ error: noop });
  }

  /**
   * Closes the connection, ends the answers to browsers with the message to connect again, and the connections that they came over, and
   * waits for all of this, for a second at the longest. Nest calls it, with the
   * `onModuleDestroy` of the application's own services behind it, and before it waits for the answers that are still being sent.
   */
  async beforeApplicationShutdown(): Promise<void> {
    // First the browsers: they are to come back, to another replica or after the restart, and the feed has not ended for them.
    this.relay.close();
    this.#closed$.next();
    this.#closed$.complete();
    await Promise.all([...this.#releases, ...Array.from(this.#responses, waitForClose)]);
  }

  // Holds the connection open. After a stop there is none, and none is opened.
  #held$(): Observable<never> {
    return this.#unlessStopped$(this.events$).pipe(
      ignoreElements(),
      catchError(() => NEVER),
    );
  }

  #unlessStopped$<T>(source: Observable<T>): Observable<T> {
    const { status } = this;
    return status.state === 'stopped' ? throwError(() => status.failure) : source;
  }

  #waitFor(gone: Promise<void>): void {
    this.#releases.add(gone);
    void gone.then(() => this.#releases.delete(gone));
  }

  #keep(response: Writable): void {
    if (this.#responses.has(response)) return;
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
  }
}
