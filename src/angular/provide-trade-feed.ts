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
import { tryCall } from '../protocol/type-guards.js';
import { aBoolean, anObject, checkRequired, objectWith, type Rule, validated } from '../protocol/validate.js';
import { type FeedSignalOptions, feedSignalRules, resolveFeedSignals, SHARED_FEED, sharedFeed } from './shared-feed.js';

/** The address of the relay, its request, and the signals. */
export interface ProvideTradeFeedOptions extends Omit<RelayFeedOptions, 'resumeIn'>, FeedSignalOptions {
  /** The address of the relay. `/feed` is a path on the host of the page. */
  readonly url: string | URL;
  /**
   * Headers of the request, such as a bearer token of your app, or a function that returns them. It is called before
   * each request in the injection context of the provider, so `inject()` works before its first `await`. It may be
   * async, and runs outside Angular's zone. HTTP interceptors do not see the request, because it uses `fetch`.
   * @defaultValue none
   */
  readonly headers?: RelayFeedOptions['headers'];
  /**
   * Whether the page resumes at its last position after a reload. The position is stored in the `sessionStorage` of the
   * tab. @defaultValue `true`
   */
  readonly resume?: boolean | undefined;
}

/**
 * Provides the feed of a relay to `injectTradeFeed`, for the app or for a route.
 *
 * The connection is opened when a component injects the feed, never on a server. All components share it.
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
  // Validates the options. The connection is opened by a subscription.
  open();
  return provideFeed(open, { stats, window, freshness, lingerMs });
};

const withUrl: Rule = { ...anObject, allowed: "an object such as { url: '/feed' }" };
const anAddress: Rule = {
  allowed: 'an http: or https: address without credentials',
  is: (v) => (typeof v === 'string' && v !== '') || v instanceof URL,
};
// The store for the position is this provider's own.
const { resumeIn: _, ...relayRules } = relayFeedRules;
const rules: Readonly<Record<keyof ProvideTradeFeedOptions, Rule>> = {
  url: anAddress,
  ...relayRules,
  resume: aBoolean,
  ...feedSignalRules,
};

/** Makes `inject()` work in a function that returns headers. */
const headersIn = (injector: Injector | undefined, headers: RelayFeedOptions['headers']) =>
  injector !== undefined && typeof headers === 'function' ? () => runInInjectionContext(injector, headers) : headers;

/** Resolves an address like `fetch`, against the page. On a server there is none: the address is only validated. */
const addressOf = (url: string | URL): string | URL => {
  const { document } = globalThis as { readonly document?: { readonly baseURI?: string } };
  const page = document?.baseURI ?? 'http://localhost/';
  // `relayFeed$` rejects a text that is not an address.
  return tryCall(() => new URL(url, page)) ?? url;
};

/** The position in the feed: a restart reads it from memory, a reload from the `sessionStorage` of the tab. */
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

// Reading the property throws if the user blocks the storage of the site. A page that could not store its position
// learns of it from the gap after its reload.
const inTab = <T>(use: (storage: ResumeStore) => T): T | undefined =>
  tryCall(() => {
    const { sessionStorage } = globalThis as { readonly sessionStorage?: ResumeStore };
    return sessionStorage && use(sessionStorage);
  });

/**
 * Provides the events of an Observable to `injectTradeFeed`, instead of a relay. In tests, pass a `Subject`.
 *
 * The first component subscribes, for all of them, outside Angular's zone. On a server there is no subscription. An
 * error of the source is a stop.
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

/** @param open - called with the injector of the provider each time the feed is opened; a restart subscribes again */
const provideFeed = (
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
