import {
  type EnvironmentProviders,
  inject,
  Injector,
  makeEnvironmentProviders,
  runInInjectionContext,
} from '@angular/core';
import type { Observable } from 'rxjs';
import { relayFeed$, type RelayFeedOptions, type ResumeStore } from '../browser/index.js';
import { relayFeedRules } from '../browser/relay-feed-options.js';
import type { RelayedEvent } from '../protocol/event.js';
import { isUrl, tryCall } from '../protocol/type-guards.js';
import { aBoolean, anObject, checkRequired, objectWith, type Rule, validated } from '../protocol/validate.js';
import { type FeedSignalOptions, feedSignalRules, resolveFeedSignals, SHARED_FEED, sharedFeed } from './shared-feed.js';

/** Options of the relay's address, of its request, and of the signals. */
export interface ProvideTradeFeedOptions extends Omit<RelayFeedOptions, 'resumeIn'>, FeedSignalOptions {
  /** The address of the relay. `/feed` is a path on the host of the page. */
  readonly url: string | URL;
  /**
   * Headers of the request, such as your app's bearer token, or a function that returns them. It's called before each
   * request in the provider's injection context, so `inject()` works before its first `await`. It may be async, and
   * runs outside Angular's zone. HTTP interceptors don't see the request, because it uses `fetch`. @defaultValue none
   */
  readonly headers?: RelayFeedOptions['headers'];
  /** Whether `sessionStorage` keeps the last position, so that a page resumes after a reload. @defaultValue `true` */
  readonly resume?: boolean | undefined;
}

/**
 * Provides the feed of a relay to `injectTradeFeed`, for the app or for a route.
 *
 * The first component that injects the feed opens the connection, never on a server. All components share it.
 *
 * @param options - see {@link ProvideTradeFeedOptions}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import type { ApplicationConfig } from '@angular/core';
 * import { provideTradeFeed } from 'rx-trade-feed/angular';
 *
 * export const appConfig: ApplicationConfig = {
 *   providers: [provideTradeFeed({ url: '/feed' })],
 * };
 * ```
 */
export const provideTradeFeed = (options: ProvideTradeFeedOptions): EnvironmentProviders => {
  checkRequired({ options }, { options: withUrl });
  const { url, headers, resume = true, stats, window, freshness, lingerMs, ...relay } = validated(options, rules);
  checkRequired({ url }, { url: anAddress });
  const address = addressOf(url);
  const open = (injector?: Injector) =>
    relayFeed$(address, { ...relay, headers: headersIn(injector, headers), resumeIn: resumeStore(resume) });
  // Validates the options. Only subscribing opens the connection.
  open();
  return provideFeed(open, { stats, window, freshness, lingerMs });
};

const withUrl: Rule = { ...anObject, allowed: "an object such as { url: '/feed' }" };
const anAddress: Rule = {
  allowed: 'an http: or https: address without credentials',
  is: (v) => (typeof v === 'string' && v !== '') || isUrl(v),
};
// This provider stores the position itself.
const { resumeIn: _, ...relayRules } = relayFeedRules;
const rules = { url: anAddress, ...relayRules, resume: aBoolean, ...feedSignalRules };

const headersIn = (injector: Injector | undefined, headers: RelayFeedOptions['headers']) =>
  injector !== undefined && typeof headers === 'function' ? () => runInInjectionContext(injector, headers) : headers;

/** Resolves an address against the page, like `fetch`. A server has no page, so there it's only validated. */
const addressOf = (url: string | URL): string | URL => {
  const { document } = globalThis as { readonly document?: { readonly baseURI?: string } };
  // `relayFeed$` rejects a text that isn't an address.
  return tryCall(() => new URL(url, document?.baseURI ?? 'http://localhost/')) ?? url;
};

/** Stores the position: a restart reads it from memory, a reload from the tab's `sessionStorage`. */
const resumeStore = (isForReload: boolean): ResumeStore => {
  const positions = new Map<string, string>();
  return {
    getItem: (key) => positions.get(key) ?? (isForReload ? inTab((tab) => tab.getItem(key)) : undefined) ?? null,
    setItem: (key, position) => {
      positions.set(key, position);
      if (isForReload) inTab((tab) => tab.setItem(key, position));
    },
  };
};

// The property throws if the user blocks the site's storage. A gap after a reload then shows the lost position.
const inTab = <T>(use: (storage: ResumeStore) => T): T | undefined =>
  tryCall(() => {
    const { sessionStorage } = globalThis as { readonly sessionStorage?: ResumeStore };
    return sessionStorage && use(sessionStorage);
  });

/**
 * Provides the events of an Observable to `injectTradeFeed`, instead of a relay. In tests, pass a `Subject`.
 *
 * The first component subscribes on behalf of all, outside Angular's zone. A server never subscribes. An error of the
 * source is a stop.
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
 * // Of TestBed.configureTestingModule
 * const providers = [provideTradeFeedFrom(relay$)];
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

/** Calls `open` each time the feed is opened. A restart subscribes again to what it returned. */
const provideFeed = (open: (injector: Injector) => Observable<RelayedEvent>, options: FeedSignalOptions) => {
  const settings = resolveFeedSignals(options);
  const useFactory = () => {
    const injector = inject(Injector);
    return sharedFeed(() => open(injector), settings);
  };
  return makeEnvironmentProviders([{ provide: SHARED_FEED, useFactory }]);
};
