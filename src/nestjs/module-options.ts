import type { ConfigurableModuleAsyncOptions, ConfigurableModuleOptionsFactory } from '@nestjs/common';
import { feedStats, type FeedStatsOptions } from '../operators/feed-stats.js';
import { shareFeed, type ShareFeedOptions } from '../operators/share-feed.js';
import { feedOptionRules, resolveOptions, type Settings, type TradeFeedOptions } from '../options.js';
import type { Feed } from '../protocol/feed.js';
import { feeds } from '../protocol/feed.js';
import { aBoolean, aFunction, anObject, oneOf, type Rule, validated } from '../protocol/rules.js';
import { Secret } from '../protocol/secret.js';
import { type RelayOptions, resolveRelayOptions } from '../relay/relay-options.js';

/** What a {@link TradeFeedModule} is told: everything that the feed can be told, and what the module makes of it. */
export interface TradeFeedModuleOptions extends TradeFeedOptions {
  /** The feed. @defaultValue `'market'` */
  readonly feed?: Feed | undefined;
  /**
   * When the connection is opened: with the first subscriber, or when the application has started, and then it is kept whoever
   * is subscribed.
   *
   * @defaultValue `'first-subscriber'`
   */
  readonly connect?: 'first-subscriber' | 'bootstrap' | undefined;
  /** How the connection is shared. */
  readonly share?: ShareFeedOptions | undefined;
  /** What `stats$` counts, and how often it tells. */
  readonly stats?: FeedStatsOptions | undefined;
  /** What is handed on to browsers, and to how many. */
  readonly relay?: RelayOptions | undefined;
}

/** What has to be known before the options are: it stands beside `useFactory`, not in what that gives. */
export interface TradeFeedModuleExtras {
  /**
   * The name of a further feed, which is injected with `@InjectTradeFeed(name)`. Each feed of an application needs an account of its own.
   *
   * @defaultValue none: the feed is injected by its type, `TradeFeed`
   */
  readonly name?: string | undefined;
  /** Whether every module can inject the feed without importing this one. @defaultValue false */
  readonly isGlobal?: boolean | undefined;
}

/** A class that gives the options, for `useClass` and `useExisting`. */
export type TradeFeedOptionsFactory = ConfigurableModuleOptionsFactory<
  TradeFeedModuleOptions,
  'createTradeFeedOptions'
>;

/** What `forRootAsync` takes: one of `useFactory`, `useClass` and `useExisting`, as in every module of NestJS. */
export type TradeFeedAsyncOptions = ConfigurableModuleAsyncOptions<TradeFeedModuleOptions, 'createTradeFeedOptions'> &
  TradeFeedModuleExtras;

/** The options after their validation, the key wrapped. Neither the address nor the key must be there yet. */
export interface ModuleSettings extends Omit<TradeFeedModuleOptions, keyof TradeFeedOptions> {
  readonly feed: Feed;
  readonly settings: Settings;
}

/**
 * Validates the options of a module.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const moduleSettings = (options: TradeFeedModuleOptions): ModuleSettings => {
  // A factory that gives these would not be heard: the module is made before it is called.
  const { name, isGlobal } = Object(options) as TradeFeedModuleExtras;
  validated({ name, isGlobal }, { name: besideFactory, isGlobal: besideFactory });
  const { feed = 'market', connect, share, stats, relay, ...feedOptions } = validated(options, rules);
  // Each says by itself what is wrong with its own.
  if (share) shareFeed(share);
  if (stats) feedStats(stats);
  resolveRelayOptions(relay, 'relay.');
  return { feed, connect, share, stats, relay, settings: resolveOptions(feedOptions) };
};

/** Validates the options of `forRoot`, which have what stands beside them among them. */
export const checkOptions = (options: TradeFeedModuleOptions & TradeFeedModuleExtras): void => {
  validated({ options }, { options: anObject });
  const { name, isGlobal, ...moduleOptions } = options;
  checkExtras({ name, isGlobal });
  moduleSettings(moduleOptions);
};

const checkExtras = ({ name, isGlobal }: TradeFeedModuleExtras): void => {
  validated({ name, isGlobal }, extraRules);
};

/** Validates the options of `forRootAsync`; what its factory gives is validated when it is there. */
export const checkAsyncOptions = (options: TradeFeedAsyncOptions): void => {
  validated<TradeFeedAsyncOptions>(options, asyncRules);
  const { useFactory, useClass, useExisting } = options;
  validated({ useFactory: useFactory ?? useClass ?? useExisting ?? null }, { useFactory: oneSource });
};

/**
 * Validates options and wraps the key in them: what Nest holds can be injected and printed by everything in the application.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const heldOptions = (options: TradeFeedModuleOptions): TradeFeedModuleOptions => {
  moduleSettings(options);
  return typeof options.apiKey === 'string' ? { ...options, apiKey: new Secret(options.apiKey) } : options;
};

const anything: Rule = { allowed: 'anything', is: () => true };
const besideFactory: Rule = { allowed: 'given beside `useFactory`, not by it', is: () => false };
const oneSource: Rule = { allowed: 'given, or `useClass` or `useExisting` in its place', is: (v) => v !== null };

const rules: Readonly<Record<keyof TradeFeedModuleOptions, Rule>> = {
  feed: oneOf(...feeds),
  connect: oneOf('first-subscriber', 'bootstrap'),
  share: anObject,
  stats: anObject,
  relay: anObject,
  ...feedOptionRules,
};

const extraRules: Readonly<Record<keyof TradeFeedModuleExtras, Rule>> = {
  name: { allowed: 'a text that is not empty', is: (v) => typeof v === 'string' && v !== '' },
  isGlobal: aBoolean,
};

const asyncRules: Readonly<Record<keyof TradeFeedAsyncOptions, Rule>> = {
  ...extraRules,
  imports: anything,
  inject: anything,
  useFactory: aFunction,
  useClass: anything,
  useExisting: anything,
  provideInjectionTokensFrom: anything,
};
