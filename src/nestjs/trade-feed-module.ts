import { ConfigurableModuleBuilder, type DynamicModule, Module, type Provider } from '@nestjs/common';
import { callPlace } from '../accounts/call-place.js';
import { feedImports } from './app-feeds.js';
import { feedProviders } from './feed-providers.js';
import {
  checkAsyncOptions,
  checkOptions,
  wrappedOptions,
  type TradeFeedAsyncOptions,
  type TradeFeedModuleExtras,
  type TradeFeedModuleOptions,
} from './module-options.js';

const optionsToken = 'TRADE_FEED_OPTIONS';

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<TradeFeedModuleOptions>({
  optionsInjectionToken: optionsToken,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createTradeFeedOptions')
  .build();

/**
 * Provides a `TradeFeed`, and a `TradeFeedHealthIndicator`, to an application of NestJS 11 or 12.
 *
 * Import it once for each account: each module opens a connection, and an account has only one (contract, section 3.2). With `isGlobal`
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
   * Creates the module from options. The address and the key may come from the environment, which is read when the application starts.
   *
   * @param options - see {@link TradeFeedModuleOptions} and {@link TradeFeedModuleExtras}
   * @throws TradeFeedError with code `invalid-options`, from the call itself
   */
  static override forRoot(options: TradeFeedModuleOptions & TradeFeedModuleExtras = {}): DynamicModule {
    checkOptions(options);
    const { name, isGlobal, ...moduleOptions } = options;
    const where = `TradeFeedModule.forRoot at ${callPlace()}`;
    return feedModule(super.forRoot(wrappedOptions(moduleOptions)), { name, isGlobal }, where);
  }

  /**
   * Creates the module from options of a factory, which can read a `ConfigService` or a vault. The options are validated when the application
   * starts. The start fails if they are not valid.
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
    const where = `TradeFeedModule.forRootAsync at ${callPlace()}`;
    return feedModule(super.forRootAsync(options), options, where);
  }
}

Module({ imports: feedImports })(TradeFeedModule);

const feedModule = (definition: DynamicModule, extras: TradeFeedModuleExtras, where: string): DynamicModule => ({
  ...definition,
  global: extras.isGlobal === true,
  ...feedProviders(optionsToken, { name: extras.name, where }, (definition.providers ?? []).map(withKeyWrapped)),
});

/** Wraps the key in the options of the factory: Nest can print the value of a provider, and all code can inject it. */
const withKeyWrapped = (provider: Provider): Provider =>
  'useFactory' in provider && provider.provide === optionsToken
    ? { ...provider, useFactory: async (...args: unknown[]) => wrappedOptions(await callFactory(provider, args)) }
    : provider;

const callFactory = async ({ useFactory }: { readonly useFactory: unknown }, args: readonly unknown[]) =>
  (useFactory as (...args: readonly unknown[]) => TradeFeedModuleOptions | Promise<TradeFeedModuleOptions>)(...args);
