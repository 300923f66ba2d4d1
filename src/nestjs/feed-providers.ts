import type { DynamicModule, InjectionToken, Provider } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { AppFeeds, type FeedEntry, type FeedPlace } from './app-feeds.js';
import { getTradeFeedToken } from './feed-token.js';
import { TradeFeedHealthIndicator } from './health-indicator.js';
import type { TradeFeedModuleOptions } from './module-options.js';
import { TradeFeed } from './trade-feed.js';

/** The providers and exports of a module. */
export type ModuleParts = Required<Pick<DynamicModule, 'providers' | 'exports'>>;

/**
 * Creates the providers and exports of a module: the feed and its health indicator.
 *
 * @param optionsToken - the token of the options
 * @param feed - the name of the feed, and the place that defines it
 * @param others - the other providers of the module, among them the options
 */
export const feedProviders = (
  optionsToken: InjectionToken,
  { name, where }: Omit<FeedPlace, 'id'>,
  others: readonly Provider[],
): ModuleParts => {
  const token = getTradeFeedToken(name);
  const place: FeedPlace = { name, where, id: randomUUID() };
  const providers: Provider[] = [
    ...others,
    { provide: placeToken, useValue: place },
    {
      provide: entryToken,
      inject: [AppFeeds, placeToken],
      useFactory: (feeds: AppFeeds, at: FeedPlace) => feeds.add(at),
    },
    {
      // This check is separate from the feed, which a test may replace.
      provide: startToken,
      inject: [entryToken, optionsToken],
      useFactory: (entry: FeedEntry, options: TradeFeedModuleOptions) => entry.start(options),
    },
    {
      provide: token,
      inject: [optionsToken, entryToken, startToken],
      useFactory: (options: TradeFeedModuleOptions, entry: FeedEntry) => new TradeFeed(options, name, entry.where),
    },
  ];
  // Only the feed without a name has an indicator: with two, the order of imports would decide which one is injected.
  if (name !== undefined) return { providers, exports: [token] };
  const health: Provider = {
    provide: TradeFeedHealthIndicator,
    inject: [token],
    useFactory: (tradeFeed: TradeFeed) => new TradeFeedHealthIndicator(tradeFeed),
  };
  return { providers: [...providers, health], exports: [token, TradeFeedHealthIndicator] };
};

const placeToken = 'TRADE_FEED_PLACE';
const entryToken = 'TRADE_FEED_ENTRY';
const startToken = 'TRADE_FEED_START';
