import { type DynamicModule, Module } from '@nestjs/common';
import { AsyncSubject, filter, isObservable, type Observable, switchMap, take } from 'rxjs';
import { callPlace } from '../accounts/call-place.js';
import { anObject, invalidOption } from '../protocol/rules.js';
import type { AccountOptions, ServiceEvent, ServiceSources, TradeFeedServiceOptions } from '../testing/index.js';
import { feedImports } from './app-feeds.js';
import { feedProviders, type ModuleParts } from './feed-providers.js';
import {
  checkOptions,
  wrappedOptions,
  type TradeFeedModuleExtras,
  type TradeFeedModuleOptions,
} from './module-options.js';
import { getTradeFeedTestingToken, TradeFeedTesting } from './trade-feed-testing.js';

/** The options of a {@link TradeFeedTestingModule}: those of the module, the local service and its account. */
export type TradeFeedTestingOptions = Omit<TradeFeedModuleOptions, 'baseUrl' | 'apiKey'> &
  TradeFeedModuleExtras & {
    /** How the local service is started. Its `sources` begin with the first connection. */
    readonly service?: TradeFeedServiceOptions | undefined;
    /** The account of the feed. @defaultValue `{ plan: 'developer' }`: frames arrive without delay */
    readonly account?: AccountOptions | undefined;
  };

/**
 * Provides the same as a `TradeFeedModule`, connected to a local service on 127.0.0.1, for tests of an application.
 *
 * The service implements the complete contract (see `rx-trade-feed/testing`), and starts and stops with the application. Its code is loaded when
 * this module is used, not by an import of `rx-trade-feed/nestjs`. Reconnects are fast: the first delay is 10 ms, unless you set `backoff`.
 * The service does not keep the process running before the feed is connected, so a `compile()` that rejects needs no cleanup.
 *
 * @example
 * ```ts
 * import { Test } from '@nestjs/testing';
 * import { firstValueFrom } from 'rxjs';
 * import { TradeFeed, TradeFeedTesting, TradeFeedTestingModule } from 'rx-trade-feed/nestjs';
 *
 * const app = await Test.createTestingModule({ imports: [TradeFeedTestingModule.forRoot()] }).compile();
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
    const { service, account = { plan: 'developer' }, name, isGlobal, ...rest } = options;
    for (const option of ['baseUrl', 'apiKey'])
      if (option in rest) throw invalidOption(option, 'left out: the local service provides it');
    const moduleOptions: TradeFeedModuleOptions = {
      ...rest,
      backoff: { initialDelayMs: 10, maxDelayMs: 100, ...rest.backoff },
    };
    checkOptions({ ...moduleOptions, name, isGlobal });
    const token = getTradeFeedTestingToken(name);
    const where = `TradeFeedTestingModule.forRoot at ${callPlace()}`;
    return {
      module: TradeFeedTestingModule,
      global: isGlobal === true,
      ...withExport(
        token,
        feedProviders(optionsToken, { name, where }, [
          { provide: token, useFactory: () => start(service, account, rest.feed) },
          {
            provide: optionsToken,
            inject: [token],
            useFactory: (testing: TradeFeedTesting): TradeFeedModuleOptions =>
              wrappedOptions({
                ...moduleOptions,
                baseUrl: testing.service.baseUrl,
                apiKey: testing.account.createApiKey(),
              }),
          },
        ]),
      ),
    };
  }
}

Module({ imports: feedImports })(TradeFeedTestingModule);

const optionsToken = 'TRADE_FEED_TESTING_OPTIONS';

// When another provider fails, Nest calls no hook of this module. So nothing may keep the process running before a connection is open.
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

/** Delays the sources of a service: their timers would keep the process running. */
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

const withExport = (
  token: ReturnType<typeof getTradeFeedTestingToken>,
  { providers, exports }: ModuleParts,
): ModuleParts => ({ providers, exports: [...exports, token] });
