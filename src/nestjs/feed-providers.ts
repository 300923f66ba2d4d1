import type { DynamicModule, InjectionToken, Provider } from '@nestjs/common';
import { getTradeFeedToken } from './feed-token.js';
import { TradeFeedHealthIndicator } from './health-indicator.js';
import type { TradeFeedModuleOptions } from './module-options.js';
import { TradeFeed } from './trade-feed.js';

/** What a module provides and exports. */
export type Provided = Required<Pick<DynamicModule, 'providers' | 'exports'>>;

/**
 * Makes what a module provides and exports: the feed and its health indicator.
 *
 * @param optionsToken - where the feed finds its options
 * @param name - the name of the feed
 * @param others - what the module has besides: at the least the options
 */
export const feedProviders = (
  optionsToken: InjectionToken,
  name: string | undefined,
  others: readonly Provider[],
): Provided => {
  const token = getTradeFeedToken(name);
  const feed: Provider = {
    provide: token,
    inject: [optionsToken],
    useFactory: (options: TradeFeedModuleOptions) => new TradeFeed(options, name),
  };
  // There is one indicator, or the order of imports would decide whose it is.
  if (name !== undefined) return { providers: [...others, feed], exports: [token] };
  const health: Provider = {
    provide: TradeFeedHealthIndicator,
    inject: [token],
    useFactory: (tradeFeed: TradeFeed) => new TradeFeedHealthIndicator(tradeFeed),
  };
  return { providers: [...others, feed, health], exports: [token, TradeFeedHealthIndicator] };
};
