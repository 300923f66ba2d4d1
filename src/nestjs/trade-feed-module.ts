import { ConfigurableModuleBuilder, type DynamicModule, Module, type Provider } from '@nestjs/common';
import { feedProviders } from './feed-providers.js';
import {
  checkAsyncOptions,
  checkOptions,
  type TradeFeedAsyncOptions,
  type TradeFeedModuleExtras,
  type TradeFeedModuleOptions,
  withWrappedKey,
} from './module-options.js';

const optionsToken = 'TRADE_FEED_OPTIONS';

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<TradeFeedModuleOptions>({
  optionsInjectionToken: optionsToken,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createTradeFeedOptions')
  .setExtras<TradeFeedModuleExtras>({ name: undefined, isGlobal: false }, (definition, { name, isGlobal }) => ({
    ...definition,
    global: isGlobal === true,
    ...feedProviders(optionsToken, name, definition.providers as Provider[]),
  }))
  .build();

/**
 * Provides a `TradeFeed`, and a `TradeFeedHealthIndicator`, to an application of NestJS 11 or 12.
 *
 * Import it once for each account: two modules are two connections, and an account has one (contract, section 3.2). With `isGlobal`
 * every module of the application can inject the feed.
 *
 * @example
 * ```ts
 * import { Module } from '@nestjs/common';
 * import { TradeFeedModule } from 'rx-trade-feed/nestjs';
 *
 * @Module({ imports: [TradeFeedModule.forRoot({ feed: 'market', isGlobal: true })] }) // address and key from the environment
 * export class AppModule {}
 * ```
 */
export class TradeFeedModule extends ConfigurableModuleClass {
  /**
   * Makes the module from options. The address and the key may come from the environment, which is read when the application starts.
   *
   * @param options - see {@link TradeFeedModuleOptions} and {@link TradeFeedModuleExtras}
   * @throws TradeFeedError with code `invalid-options`, from the call itself
   */
  static override forRoot(options: TradeFeedModuleOptions & TradeFeedModuleExtras = {}): DynamicModule {
    checkOptions(options);
    return super.forRoot(withWrappedKey(options));
  }

  /**
   * Makes the module from options that come from elsewhere: from a `ConfigService`, from a vault. What the factory gives is validated
   * when the application starts, and a start with options that are not valid fails.
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
    return super.forRootAsync(options);
  }
}

Module({})(TradeFeedModule);
