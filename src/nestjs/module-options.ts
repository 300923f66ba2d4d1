import type { ConfigurableModuleAsyncOptions, ConfigurableModuleOptionsFactory } from '@nestjs/common';
import { type ClusterElectionOptions, resolveElectionOptions } from '../cluster/cluster-options.js';
import { feedStats, type FeedStatsOptions } from '../operators/feed-stats.js';
import { checkFreshness, type FreshnessOptions } from '../operators/freshness.js';
import { shareFeed, type ShareFeedOptions } from '../operators/share-feed.js';
import { feedOptionRules, resolveOptions, type Settings, type TradeFeedOptions } from '../feed/options.js';
import type { Feed } from '../protocol/feed.js';
import { feeds } from '../protocol/contract.js';
import { aBoolean, aFunction, anObject, oneOf, type Rule, validated } from '../protocol/validate.js';
import { Secret } from '../protocol/secret.js';
import { type RelayOptions, resolveRelayOptions } from '../relay/relay-options.js';

/** The options of a {@link TradeFeedModule}: everything the feed takes, and what the module adds. */
export interface TradeFeedModuleOptions extends TradeFeedOptions {
  /** The feed. @defaultValue `'market'` */
  readonly feed?: Feed | undefined;
  /**
   * When to open the connection: with the first subscriber, or as soon as the application has started (`'bootstrap'`),
   * which also keeps it open when the last subscriber leaves.
   *
   * In a cluster, when this replica joins: from then on it can own the connection, and pages of other replicas can
   * continue here.
   *
   * @defaultValue `'first-subscriber'`; with `cluster`: `'bootstrap'`
   */
  readonly connect?: 'first-subscriber' | 'bootstrap' | undefined;
  /** How subscribers share the connection. */
  readonly share?: ShareFeedOptions | undefined;
  /** How often `stats$` emits. */
  readonly stats?: FeedStatsOptions | undefined;
  /**
   * When the newest frame counts as too old: see `freshness`. The feed then logs a warning, and its health is `down`.
   *
   * @defaultValue none: the age of the frames is not checked
   */
  readonly freshness?: FreshnessOptions | undefined;
  /**
   * Whether to measure the feed with the global meter and tracer of OpenTelemetry: see `feedMetrics` of
   * `rx-trade-feed/otel`. Needs the package `@opentelemetry/api`. Start the SDK before the application.
   *
   * @defaultValue false
   */
  readonly telemetry?: boolean | undefined;
  /** The limits of the relay that serves browsers. */
  readonly relay?: RelayOptions | undefined;
  /**
   * Gives all replicas of the application one connection: pass the engine (import `memoryEngine`, `natsEngine` or
   * `redisEngine`), the name of the account, and the options of `createFeedCluster`.
   *
   * @defaultValue none: each process opens its own connection
   */
  readonly cluster?: ClusterElectionOptions | undefined;
}

/**
 * The options that the module needs before it calls `useFactory`. Pass them next to `useFactory`: the factory can't
 * return them.
 */
export interface TradeFeedModuleExtras {
  /**
   * The name of an additional feed, for `@InjectTradeFeed(name)`. Each feed of an application needs a separate account.
   *
   * @defaultValue none: Nest injects the feed by its type, `TradeFeed`
   */
  readonly name?: string | undefined;
  /** Lets every module inject the feed without importing this one. @defaultValue false */
  readonly isGlobal?: boolean | undefined;
}

/** A class that creates the options, for `useClass` and `useExisting`. */
export type TradeFeedOptionsFactory = ConfigurableModuleOptionsFactory<
  TradeFeedModuleOptions,
  'createTradeFeedOptions'
>;

/** The options of `forRootAsync`: one of `useFactory`, `useClass` and `useExisting`, as in other modules of NestJS. */
export type TradeFeedAsyncOptions = ConfigurableModuleAsyncOptions<TradeFeedModuleOptions, 'createTradeFeedOptions'> &
  TradeFeedModuleExtras;

/** The validated options, with a wrapped key. The address and the key may still be missing. */
export interface ModuleSettings extends Omit<TradeFeedModuleOptions, keyof TradeFeedOptions> {
  readonly feed: Feed;
  readonly settings: Settings;
}

export const moduleSettings = (options: TradeFeedModuleOptions): ModuleSettings => {
  // Nest creates the module before it calls the factory, so a factory that returns these is too late.
  const { name, isGlobal } = Object(options) as TradeFeedModuleExtras;
  validated({ name, isGlobal }, { name: nextToFactory, isGlobal: nextToFactory });
  const valid = validated(options, rules);
  const { feed = 'market', connect, share, stats, freshness, telemetry, relay, cluster, ...feedOptions } = valid;
  // Each of these validates its options.
  if (share) shareFeed(share);
  if (stats) feedStats(stats);
  if (freshness) checkFreshness(freshness, 'freshness.');
  resolveRelayOptions(relay, 'relay.');
  if (cluster) resolveElectionOptions(cluster, 'cluster.');
  const moduleOptions = { feed, connect, share, stats, freshness, telemetry, relay, cluster };
  return { ...moduleOptions, settings: resolveOptions(feedOptions) };
};

export const splitOptions = (options: TradeFeedModuleOptions & TradeFeedModuleExtras) => {
  validated({ options }, { options: anObject });
  const { name, isGlobal, ...moduleOptions } = options;
  validated<TradeFeedModuleExtras>({ name, isGlobal }, extraRules);
  return { extras: { name, isGlobal }, moduleOptions: wrappedOptions(moduleOptions) };
};

/** Validates the options of `forRootAsync`, but not yet what its factory will return. */
export const checkAsyncOptions = (options: TradeFeedAsyncOptions): void => {
  validated<TradeFeedAsyncOptions>(options, asyncRules);
  const { useFactory, useClass, useExisting } = options;
  validated({ useFactory: useFactory ?? useClass ?? useExisting ?? null }, { useFactory: oneSource });
};

/** Validates options and wraps their key: Nest stores them, and any code of the application can print them. */
export const wrappedOptions = (options: TradeFeedModuleOptions): TradeFeedModuleOptions => {
  moduleSettings(options);
  return typeof options.apiKey === 'string' ? { ...options, apiKey: new Secret(options.apiKey) } : options;
};

const anything: Rule = { allowed: 'anything', is: () => true };
const nextToFactory: Rule = { allowed: 'set next to `useFactory`, not returned by it', is: () => false };
const oneSource: Rule = { allowed: 'set, or `useClass` or `useExisting` instead', is: (v) => v !== null };

const rules: Readonly<Record<keyof TradeFeedModuleOptions, Rule>> = {
  feed: oneOf(...feeds),
  connect: oneOf('first-subscriber', 'bootstrap'),
  share: anObject,
  stats: anObject,
  freshness: anObject,
  telemetry: aBoolean,
  relay: anObject,
  cluster: anObject,
  ...feedOptionRules,
};

const extraRules: Readonly<Record<keyof TradeFeedModuleExtras, Rule>> = {
  name: { allowed: "a string that isn't empty", is: (v) => typeof v === 'string' && v !== '' },
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
