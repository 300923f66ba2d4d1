import { type EnvironmentProviders, makeEnvironmentProviders } from '@angular/core';
import type { Observable } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import { SHARED_FEED, sharedFeed } from './shared-feed.js';
import { type FeedSignalOptions, resolveFeedSignals } from './signal-options.js';

/**
 * Provides a feed to `injectTradeFeed`.
 *
 * @param open - gives the events; asked each time the feed is opened, and subscribed to again for a restart
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 */
export const provideFeed = (open: () => Observable<RelayedEvent>, options: FeedSignalOptions): EnvironmentProviders => {
  const settings = resolveFeedSignals(options);
  return makeEnvironmentProviders([{ provide: SHARED_FEED, useFactory: () => sharedFeed(open, settings) }]);
};
