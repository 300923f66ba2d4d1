import { type EnvironmentProviders, type Injector, runInInjectionContext } from '@angular/core';
import { relayFeed$, type RelayFeedOptions } from '../browser/index.js';
import { aBoolean, anObject, checkRequired, type Rule, validated } from '../protocol/rules.js';
import { tryCall } from '../protocol/try-call.js';
import { provideFeed } from './provide-feed.js';
import { resumeStore } from './resume-store.js';
import { feedSignalRules, type FeedSignalOptions } from './signal-options.js';

/** Where the relay is, how it is asked, and what is made of what it sends. */
export interface ProvideTradeFeedOptions extends Omit<RelayFeedOptions, 'resumeIn'>, FeedSignalOptions {
  /** The address of the relay; `/feed` is one on the page's own host. */
  readonly url: string | URL;
  /**
   * Headers of the request, such as a bearer token of your app; or a function that is called before each request, in the injection context
   * of the provider: `inject()` works in it, up to its first `await`. It may be async, and runs outside Angular's zone. HTTP interceptors
   * do not see the request, which is made with `fetch`. @defaultValue none
   */
  readonly headers?: RelayFeedOptions['headers'];
  /** Whether a reload of the page goes on where it was, by what the `sessionStorage` of the tab remembers. @defaultValue `true` */
  readonly resume?: boolean | undefined;
}

/**
 * Provides the feed of a relay to `injectTradeFeed`, for the whole app or for a route.
 *
 * Nothing is opened before a component injects the feed, and nothing ever on a server. All components share one connection.
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
  const { url, headers, resume = true, stats, window, lingerMs, ...relay } = validated(options, rules);
  checkRequired({ url }, { url: anAddress });
  const address = addressOf(url);
  const open = (injector?: Injector) =>
    relayFeed$(address, { ...relay, headers: headersIn(injector, headers), resumeIn: resumeStore(resume) });
  // Opens nothing, but checks its options.
  open();
  return provideFeed(open, { stats, window, lingerMs });
};

const withUrl: Rule = { ...anObject, allowed: "an object such as { url: '/feed' }" };
const anAddress: Rule = {
  allowed: 'an http: or https: address without credentials',
  is: (v) => (typeof v === 'string' && v !== '') || v instanceof URL,
};
// `relayFeed$` checks what is its own.
const ofRelay: Rule = { allowed: '', is: () => true };

const rules: Readonly<Record<keyof ProvideTradeFeedOptions, Rule>> = {
  url: anAddress,
  headers: ofRelay,
  credentials: ofRelay,
  connectTimeoutMs: ofRelay,
  idleTimeoutMs: ofRelay,
  backoff: ofRelay,
  maxFeedStops: ofRelay,
  classify: ofRelay,
  tabs: ofRelay,
  scheduler: ofRelay,
  resume: aBoolean,
  ...feedSignalRules,
};

/** Lets `inject()` work in a function that gives headers. */
const headersIn = (injector: Injector | undefined, headers: RelayFeedOptions['headers']) =>
  injector !== undefined && typeof headers === 'function' ? () => runInInjectionContext(injector, headers) : headers;

/** Where the address leads that `fetch` would ask. A server has no page; there it is only checked. */
const addressOf = (url: string | URL): string | URL => {
  const { document } = globalThis as { readonly document?: { readonly baseURI?: string } };
  const page = document?.baseURI ?? 'http://localhost/';
  // `relayFeed$` refuses what is no address.
  return tryCall(() => new URL(url, page)) ?? url;
};
