import type { EnvironmentProviders } from '@angular/core';
import type { Observable } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import { checkRequired, objectWith } from '../protocol/rules.js';
import { provideFeed } from './provide-feed.js';
import type { FeedSignalOptions } from './signal-options.js';

/**
 * Provides the events of an Observable to `injectTradeFeed`, instead of a relay. In tests, pass a `Subject`.
 *
 * The first component subscribes, for all of them, outside Angular's zone. On a server there is no subscription. An error of the source is a stop.
 *
 * @param events$ - the source; each opening and each restart of the feed subscribes to it
 * @param options - see {@link FeedSignalOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { Subject } from 'rxjs';
 * import { provideTradeFeedFrom } from 'rx-trade-feed/angular';
 * import type { RelayedEvent } from 'rx-trade-feed/browser';
 *
 * const relay$ = new Subject<RelayedEvent>();
 * const providers = [provideTradeFeedFrom(relay$)]; // of TestBed.configureTestingModule
 * relay$.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
 * ```
 */
export const provideTradeFeedFrom = (
  events$: Observable<RelayedEvent>,
  options: FeedSignalOptions = {},
): EnvironmentProviders => {
  checkRequired({ events$ }, { events$: objectWith('subscribe', 'an Observable of events') });
  return provideFeed(() => events$, options);
};
