import { type EnvironmentProviders, inject, Injector, makeEnvironmentProviders } from '@angular/core';
import type { Observable } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import { SHARED_FEED, sharedFeed } from './shared-feed.js';
import { type FeedSignalOptions, resolveFeedSignals } from './signal-options.js';

/**
 * Provides a feed to `injectTradeFeed`.
 *
 * @param open - returns the events; called with the injector of the provider each time the feed is opened. A restart subscribes again
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 */
export const provideFeed = (
  open: (injector: Injector) => Observable<RelayedEvent>,
  options: FeedSignalOptions,
): EnvironmentProviders => {
  const settings = resolveFeedSignals(options);
  const useFactory = () => {
    const injector = inject(Injector);
    return sharedFeed(() => open(injector), settings);
  };
  return makeEnvironmentProviders([{ provide: SHARED_FEED, useFactory }]);
};
