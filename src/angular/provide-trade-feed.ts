import { type EnvironmentProviders, type Injector, runInInjectionContext } from '@angular/core';
import { relayFeed$, type RelayFeedOptions } from '../browser/index.js';
import { aBoolean, anObject, checkRequired, type Rule, validated } from '../protocol/rules.js';
import { tryCall } from '../protocol/try-call.js';
import { provideFeed } from './provide-feed.js';
import { resumeStore } from './resume-store.js';
import { feedSignalRules, type FeedSignalOptions } from './signal-options.js';

/** The address of the relay, its request, and the signals. */
export interface ProvideTradeFeedOptions extends Omit<RelayFeedOptions, 'resumeIn'>, FeedSignalOptions {
  /** The address of the relay. `/feed` is a path on the host of the page. */
  readonly url: string | URL;
  /**
   * Headers of the request, such as a bearer token of your app, or a function that returns them. It is called before each request in the
   * injection context of the provider, so `inject()` works before its first `await`. It may be async, and runs outside Angular's zone. HTTP
   * interceptors do not see the request, because it uses `fetch`. @defaultValue none
   */
  readonly headers?: RelayFeedOptions['headers'];
  /** Whether the page resumes at its last position after a reload. The position is stored in the `sessionStorage` of the tab. @defaultValue `true` */
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
// `relayFeed$` validates these options.
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

/** Makes `inject()` work in a function that returns headers. */
const headersIn = (injector: Injector | undefined, headers: RelayFeedOptions['headers']) =>
  injector !== undefined && typeof headers === 'function' ? () => runInInjectionContext(injector, headers) : headers;

/** Resolves an address like `fetch`, against the page. On a server there is no page, and the address is only validated. */
const addressOf = (url: string | URL): string | URL => {
  const { document } = globalThis as { readonly document?: { readonly baseURI?: string } };
  const page = document?.baseURI ?? 'http://localhost/';
  // `relayFeed$` rejects a text that is not an address.
  return tryCall(() => new URL(url, page)) ?? url;
};
