import { type DynamicModule, Module, type OnApplicationShutdown } from '@nestjs/common';
import {
  AsyncSubject,
  filter,
  firstValueFrom,
  isObservable,
  map,
  type Observable,
  ReplaySubject,
  scan,
  startWith,
  switchMap,
  take,
} from 'rxjs';
import { callPlace } from '../feed/accounts.js';
import type { Feed } from '../protocol/feed.js';
import { anObject, invalidOption } from '../protocol/validate.js';
import type {
  AccountOptions,
  Payload,
  ServiceEvent,
  ServiceSources,
  TradeFeedAccount,
  TradeFeedService,
  TradeFeedServiceOptions,
} from '../testing/index.js';
import { AppFeedsModule, feedProviders } from './trade-feed-module.js';
import {
  splitOptions,
  type TradeFeedModuleExtras,
  type TradeFeedModuleOptions,
  wrappedOptions,
} from './module-options.js';

/** The options of a {@link TradeFeedTestingModule}: for the module, the local service and its account. */
export type TradeFeedTestingOptions = Omit<TradeFeedModuleOptions, 'baseUrl' | 'apiKey'> &
  TradeFeedModuleExtras & {
    /** How to start the local service. Its `sources` start with the first connection. */
    readonly service?: TradeFeedServiceOptions | undefined;
    /** The account of the feed. @defaultValue `{ plan: 'developer' }`: frames arrive without delay */
    readonly account?: AccountOptions | undefined;
  };

/**
 * Replaces `TradeFeedModule` in tests of your application: same providers, connected to a local service on 127.0.0.1.
 *
 * The service implements the complete contract (see `rx-trade-feed/testing`), and starts and stops with the
 * application. Importing `rx-trade-feed/nestjs` doesn't load it; using this module does. The feed reconnects quickly:
 * the first delay is 10 ms unless you set `backoff`. If `compile()` rejects, there's nothing to clean up, because the
 * service doesn't keep the process running before the feed is connected.
 *
 * @example
 * ```ts
 * import { Test } from '@nestjs/testing';
 * import { firstValueFrom } from 'rxjs';
 * import {
 *   TradeFeed,
 *   TradeFeedTesting,
 *   TradeFeedTestingModule,
 * } from 'rx-trade-feed/nestjs';
 *
 * const app = await Test.createTestingModule({
 *   imports: [TradeFeedTestingModule.forRoot()],
 * }).compile();
 * const frame = firstValueFrom(app.get(TradeFeed).frames$);
 * await app.get(TradeFeedTesting).push('hello');
 * console.log((await frame).text()); // hello
 * await app.close();
 * ```
 */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
export class TradeFeedTestingModule {
  /**
   * Creates the module.
   *
   * @param options - see {@link TradeFeedTestingOptions}
   * @throws TradeFeedError with code `invalid-options`, from the call itself
   */
  static forRoot(options: TradeFeedTestingOptions = {}): DynamicModule {
    const { service, account = { plan: 'developer' }, ...rest } = options;
    for (const option of ['baseUrl', 'apiKey'])
      if (option in rest) throw invalidOption(option, 'left out: the local service provides it');
    const backoff = { initialDelayMs: 10, maxDelayMs: 100, ...rest.backoff };
    const { moduleOptions, extras } = splitOptions({ ...rest, backoff });
    const { name, isGlobal } = extras;
    const token = getTradeFeedTestingToken(name);
    const where = `TradeFeedTestingModule.forRoot at ${callPlace()}`;
    const { providers, exports } = feedProviders(optionsToken, { name, where }, [
      { provide: token, useFactory: () => start(service, account, rest.feed) },
      {
        provide: optionsToken,
        inject: [token],
        useFactory: ({ service: { baseUrl }, account }: TradeFeedTesting) =>
          wrappedOptions({ ...moduleOptions, baseUrl, apiKey: account.createApiKey() }),
      },
    ]);
    const global = isGlobal === true;
    return { module: this, global, providers, exports: [...exports, token] };
  }
}

Module({ imports: [AppFeedsModule] })(TradeFeedTestingModule);

const optionsToken = 'TRADE_FEED_TESTING_OPTIONS';

// If another provider fails, Nest doesn't call this module's hooks. So nothing may keep the process running before a
// connection is open.
const start = async (
  options: TradeFeedServiceOptions | undefined,
  account: AccountOptions,
  feed: TradeFeedModuleOptions['feed'] = 'market',
): Promise<TradeFeedTesting> => {
  const { startTradeFeedService } = await import('../testing/index.js');
  const connected$ = new AsyncSubject<ServiceEvent>();
  const service = await startTradeFeedService(withSourcesFrom(connected$, options));
  service.unref();
  service.events$
    .pipe(
      filter(({ type }) => type === 'handshake-accepted'),
      take(1),
    )
    .subscribe(connected$);
  return new TradeFeedTesting(service, service.createAccount(account), feed);
};

/** Delays a service's sources until a client connects: their timers would keep the process running. */
const withSourcesFrom = (
  begin$: Observable<unknown>,
  options: TradeFeedServiceOptions = {},
): TradeFeedServiceOptions => {
  const { sources } = options;
  if (!anObject.is(sources)) return options;
  const delayed = (source: unknown) => (isObservable(source) ? begin$.pipe(switchMap(() => source)) : source);
  const entries = Object.entries(sources as ServiceSources).map(([feed, source]) => [feed, delayed(source)]);
  return { ...options, sources: Object.fromEntries(entries) as ServiceSources };
};

/**
 * Controls the local service of a `TradeFeedTestingModule`.
 *
 * Get it with `app.get(TradeFeedTesting)`. For a feed with a name, use {@link getTradeFeedTestingToken}.
 */
export class TradeFeedTesting implements OnApplicationShutdown {
  /** The local service: see `startTradeFeedService` of `rx-trade-feed/testing`. */
  readonly service: TradeFeedService;
  /** The account of the feed. Call `account.expireAccess()` and the like to cause failures. */
  readonly account: TradeFeedAccount;
  readonly #feed: Feed;
  readonly #open$ = new ReplaySubject<boolean>(1);

  /** @internal */
  constructor(service: TradeFeedService, account: TradeFeedAccount, feed: Feed) {
    this.service = service;
    this.account = account;
    this.#feed = feed;
    service.events$
      .pipe(
        scan((open, event) => open + changeBy(event, account.id), 0),
        startWith(0),
        map((open) => open > 0),
      )
      .subscribe(this.#open$);
  }

  /**
   * Waits until the feed is connected, then sends it each payload as a frame.
   *
   * @param payloads - a string becomes a text frame, bytes become a binary frame
   * @throws EmptyError when the application shuts down first
   */
  async push(...payloads: readonly Payload[]): Promise<void> {
    await firstValueFrom(this.#open$.pipe(filter(Boolean)));
    for (const payload of payloads) this.service.push(this.#feed, payload);
  }

  /** Shuts the service down with the application. Nest calls it. */
  async onApplicationShutdown(): Promise<void> {
    await this.service.shutdown();
  }
}

/**
 * Returns the token of a feed's `TradeFeedTesting`: the class, or a string for a feed with a name.
 *
 * @param name - the `name` of the module @defaultValue none: the feed without a name
 */
export const getTradeFeedTestingToken = (name?: string): string | typeof TradeFeedTesting =>
  name === undefined ? TradeFeedTesting : `TradeFeedTesting:${name}`;

const changeBy = (event: ServiceEvent, account: string): number => {
  if (event.type === 'handshake-accepted') return event.account === account ? 1 : 0;
  return event.type === 'connection-closed' && event.account === account ? -1 : 0;
};
