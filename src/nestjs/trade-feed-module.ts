import {
  ConfigurableModuleBuilder,
  type DynamicModule,
  Inject,
  type InjectionToken,
  Module,
  type Provider,
} from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { callPlace } from '../feed/accounts.js';
import { invalidOption } from '../protocol/validate.js';
import { TradeFeedHealthIndicator } from './health-indicator.js';
import {
  checkAsyncOptions,
  splitOptions,
  type TradeFeedAsyncOptions,
  type TradeFeedModuleExtras,
  type TradeFeedModuleOptions,
  wrappedOptions,
} from './module-options.js';
import { TradeFeed } from './trade-feed.js';

const optionsToken = 'TRADE_FEED_OPTIONS';

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<TradeFeedModuleOptions>({
  optionsInjectionToken: optionsToken,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createTradeFeedOptions')
  .build();

/**
 * Provides a `TradeFeed` and a `TradeFeedHealthIndicator` to an application of NestJS 11 or 12.
 *
 * Import it once for each account: each module opens a connection, and an account gets only one (contract, section
 * 3.2). Set `isGlobal` if every module of the application should be able to inject the feed.
 *
 * @example
 * ```ts
 * import { Module } from '@nestjs/common';
 * import { TradeFeedModule } from 'rx-trade-feed/nestjs';
 *
 * // Address and key from the environment.
 * @Module({ imports: [TradeFeedModule.forRoot({ isGlobal: true })] })
 * export class AppModule {}
 * ```
 */
export class TradeFeedModule extends ConfigurableModuleClass {
  /**
   * Creates the module from options. If they lack the address or the key, it reads the environment when the application
   * starts.
   *
   * @param options - see {@link TradeFeedModuleOptions} and {@link TradeFeedModuleExtras}
   * @throws TradeFeedError with code `invalid-options`, from the call itself
   */
  static override forRoot(options: TradeFeedModuleOptions & TradeFeedModuleExtras = {}): DynamicModule {
    const { moduleOptions, extras } = splitOptions(options);
    return feedModule(super.forRoot(moduleOptions), extras, `TradeFeedModule.forRoot at ${callPlace()}`);
  }

  /**
   * Creates the module from the options that a factory returns, for example from a `ConfigService` or a vault. The
   * application fails to start if they aren't valid.
   *
   * @param options - see {@link TradeFeedAsyncOptions}
   * @throws TradeFeedError with code `invalid-options`, from the call itself
   * @example
   * ```ts
   * import { ConfigModule, ConfigService } from '@nestjs/config';
   * import { TradeFeedModule } from 'rx-trade-feed/nestjs';
   *
   * export const tradeFeed = TradeFeedModule.forRootAsync({
   *   imports: [ConfigModule],
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({
   *     baseUrl: config.getOrThrow<string>('TRADE_FEED_BASE_URL'),
   *     apiKey: config.getOrThrow<string>('TRADE_FEED_API_KEY'),
   *   }),
   * });
   * ```
   */
  static override forRootAsync(options: TradeFeedAsyncOptions): DynamicModule {
    checkAsyncOptions(options);
    return feedModule(super.forRootAsync(options), options, `TradeFeedModule.forRootAsync at ${callPlace()}`);
  }
}

const feedModule = (definition: DynamicModule, extras: TradeFeedModuleExtras, where: string): DynamicModule => ({
  ...definition,
  global: extras.isGlobal === true,
  ...feedProviders(optionsToken, { name: extras.name, where }, (definition.providers ?? []).map(withKeyWrapped)),
});

/** Wraps the key that the factory returned: Nest can print a provider's value, and any code can inject it. */
const withKeyWrapped = (provider: Provider): Provider => {
  if (!('useFactory' in provider) || provider.provide !== optionsToken) return provider;
  const useFactory = async (...args: unknown[]) =>
    wrappedOptions((await provider.useFactory(...args)) as TradeFeedModuleOptions);
  return { ...provider, useFactory };
};

interface FeedPlace {
  readonly name: string | undefined;
  /** Where the program defines the feed, for the log. */
  readonly where: string;
}

/** Adds the feed and its health indicator to a module's other providers, which include its options. */
export const feedProviders = (
  optionsToken: InjectionToken,
  { name, where }: FeedPlace,
  others: readonly Provider[],
): Required<Pick<DynamicModule, 'providers' | 'exports'>> => {
  const token = getTradeFeedToken(name);
  const place: FeedPlace = { name, where };
  const providers: Provider[] = [
    ...others,
    // Under `moduleIdGeneratorAlgorithm: 'deep-hash'`, Nest treats equal definitions as one module.
    { provide: 'TRADE_FEED_ID', useValue: randomUUID() },
    {
      // Separate from the feed, because a test may replace that. Nest creates it as often as the options.
      provide: addedToken,
      inject: [AppFeeds, optionsToken],
      useFactory: (feeds: AppFeeds) => feeds.add(place),
    },
    {
      provide: token,
      inject: [optionsToken, addedToken],
      useFactory: (options: TradeFeedModuleOptions) => new TradeFeed(options, name, where),
    },
  ];
  // Only the feed without a name gets an indicator: if there were two, the order of imports would decide between them.
  if (name !== undefined) return { providers, exports: [token] };
  const health: Provider = {
    provide: TradeFeedHealthIndicator,
    inject: [token],
    useFactory: (tradeFeed: TradeFeed) => new TradeFeedHealthIndicator(tradeFeed),
  };
  return { providers: [...providers, health], exports: [token, TradeFeedHealthIndicator] };
};

const addedToken = 'TRADE_FEED_ADDED';

/** Tracks the feeds of one application. Refuses two with the same name, and feeds created for each request. */
class AppFeeds {
  readonly #feeds: FeedPlace[] = [];

  add(place: FeedPlace): FeedPlace {
    const same = this.#feeds.find(({ name }) => name === place.name);
    if (same === place) throw invalidOption('inject', createdPerRequest(place));
    if (same !== undefined) throw invalidOption('name', sameName(same, place));
    this.#feeds.push(place);
    return place;
  }
}

const sameName = ({ name, where }: FeedPlace, other: FeedPlace): string =>
  `different for each feed of an application, but ${where} and ${other.where} both ` +
  `${name === undefined ? 'have none' : `have '${name}'`}. Set a \`name\` for each additional feed. ` +
  'For one feed, define the module once, and import the result in each place';

const createdPerRequest = ({ where }: FeedPlace): string =>
  `providers with the default scope. A provider of ${where} is request-scoped, so each request would open a connection ` +
  'and close the previous one. Inject providers with the default scope; for a key that changes, pass a function: ' +
  '`apiKey: () => …`';

/** Nest creates this module once per application, because it's a plain class, not a dynamic module. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
export class AppFeedsModule {}
Module({ providers: [AppFeeds], exports: [AppFeeds] })(AppFeedsModule);

Module({ imports: [AppFeedsModule] })(TradeFeedModule);

/**
 * Returns the token of a feed, for `inject` and `app.get()`: the class `TradeFeed`, or a string for a feed with a name.
 *
 * @param name - the `name` of the module @defaultValue none: the feed without a name
 * @example
 * ```ts
 * import { getTradeFeedToken, TradeFeed } from 'rx-trade-feed/nestjs';
 *
 * export const rawWriter = {
 *   provide: 'RAW_WRITER',
 *   inject: [getTradeFeedToken('raw')],
 *   useFactory: (raw: TradeFeed) =>
 *     raw.frames$.subscribe((frame) => console.log(frame.text())),
 * };
 * ```
 */
export const getTradeFeedToken = (name?: string): string | typeof TradeFeed =>
  name === undefined ? TradeFeed : `TradeFeed:${name}`;

/**
 * Injects a feed with a name into a constructor parameter or a property. The feed without a name needs no decorator:
 * Nest injects it by its type.
 *
 * @param name - the `name` of the module @defaultValue none: the feed without a name
 * @example
 * ```ts
 * import { Injectable } from '@nestjs/common';
 * import { InjectTradeFeed, TradeFeed } from 'rx-trade-feed/nestjs';
 *
 * @Injectable()
 * export class Writer {
 *   constructor(@InjectTradeFeed('raw') private readonly raw: TradeFeed) {}
 * }
 * ```
 */
export const InjectTradeFeed = (name?: string): ParameterDecorator & PropertyDecorator =>
  Inject(getTradeFeedToken(name));
