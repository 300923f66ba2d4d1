import { asyncScheduler, type SchedulerLike } from 'rxjs';
import {
  aCount,
  aFunction,
  anObject,
  aScheduler,
  invalidOption,
  objectWith,
  oneOf,
  positiveMs,
  type Rule,
  validated,
} from '../protocol/rules.js';
import type { Verdict } from '../protocol/failures/failure-code.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { tryCall } from '../protocol/try-call.js';
import { page } from './page.js';
import { type BackoffOptions, type BackoffPolicy, resolveBackoff } from '../reconnect/backoff.js';

/** Where the place in the feed is remembered: `sessionStorage` has it all. */
export interface ResumeStore {
  /** Gives what was remembered; `null` when nothing was. */
  getItem(key: string): string | null;
  /** Remembers it. */
  setItem(key: string, value: string): void;
}

/** How to receive from a relay. */
export interface RelayFeedOptions {
  /**
   * Headers of the request, such as a bearer token of your app; or a function that is asked for them before each request (it may be
   * async), so that a token can be renewed. @defaultValue none
   */
  readonly headers?: RequestHeaders | (() => RequestHeaders | Promise<RequestHeaders>) | undefined;
  /** Whether cookies are sent along, as in `fetch`. @defaultValue `'same-origin'` */
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined;
  /** How long to wait for the first message of the relay, in ms. @defaultValue 10 000 */
  readonly connectTimeoutMs?: number | undefined;
  /** Silence in ms after which the connection is given up; a relay sends a heartbeat every 15 s. @defaultValue 45 000 */
  readonly idleTimeoutMs?: number | undefined;
  /** What differs from the default reconnect policy. */
  readonly backoff?: BackoffOptions | undefined;
  /**
   * How many times in a row the relay must say that its feed has stopped before this feed stops: a whole number, or `Infinity`. Until then
   * the page comes back, with backoff. An `opened` begins the count again. @defaultValue 5
   */
  readonly maxFeedStops?: number | undefined;
  /** Overrides what a failure asks for, as in `tradeFeed$`; gets the failure and its verdict. */
  readonly classify?: ((failure: TradeFeedError, verdict: Verdict) => Verdict) | undefined;
  /**
   * Where the place in the feed is remembered, so that a page that is loaded anew goes on where it was: `sessionStorage`.
   *
   * @defaultValue nowhere: it is remembered as long as the subscription lasts
   */
  readonly resumeIn?: ResumeStore | undefined;
  /**
   * `'share'`: all tabs of this browser that use the same `url` have one stream, which one of them receives for all. They must belong to the same
   * signed-in user: unsubscribe when the user signs out. @defaultValue `'separate'`
   */
  readonly tabs?: 'share' | 'separate' | undefined;
  /** For tests: what keeps the timeouts. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** Names and values of HTTP headers. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** The address and the options after their one validation. */
export interface RelayFeedSettings {
  readonly url: string;
  readonly headers: RequestHeaders | (() => RequestHeaders | Promise<RequestHeaders>);
  readonly credentials: 'omit' | 'same-origin' | 'include';
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly backoff: BackoffPolicy;
  readonly maxFeedStops: number;
  readonly classify?: (failure: TradeFeedError, verdict: Verdict) => Verdict;
  readonly resumeIn?: ResumeStore;
  readonly tabs?: 'share' | 'separate';
  readonly scheduler: SchedulerLike;
}

const defaults = Object.freeze({
  headers: {},
  credentials: 'same-origin',
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 45_000,
  maxFeedStops: 5,
  scheduler: asyncScheduler,
} as const);

/**
 * Makes the headers of a request.
 *
 * @throws TypeError for a name or a value that `fetch` would refuse; it shows neither, since a value may be a token
 */
export const requestHeaders = (own: RequestHeaders): Headers => {
  const headers = tryCall(() => new Headers(own));
  if (headers === undefined) throw new TypeError('A header is not valid.');
  return headers;
};

// Checked here, since `fetch` would refuse it before each request.
const areHeaders = (value: unknown): boolean =>
  anObject.is(value) &&
  Object.values(value as RequestHeaders).every((text) => typeof text === 'string') &&
  tryCall(() => requestHeaders(value as RequestHeaders)) !== undefined;

const rules: Readonly<Record<keyof RelayFeedOptions, Rule>> = {
  headers: {
    allowed: 'an object of texts or a function',
    isSecret: true,
    is: (v) => aFunction.is(v) || areHeaders(v),
  },
  credentials: oneOf('omit', 'same-origin', 'include'),
  connectTimeoutMs: positiveMs,
  idleTimeoutMs: positiveMs,
  backoff: anObject,
  maxFeedStops: aCount(1),
  classify: aFunction,
  resumeIn: objectWith('setItem', 'such as sessionStorage'),
  tabs: oneOf('share', 'separate'),
  scheduler: aScheduler,
};

/**
 * Checks the address and the options, and fills them up. A relative address belongs to the page.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const resolveRelayFeed = (url: string | URL, options: RelayFeedOptions = {}): RelayFeedSettings => {
  const given = validated(options, rules);
  return { ...defaults, ...given, url: addressOf(url), backoff: resolveBackoff(given.backoff) };
};

const addressOf = (url: string | URL): string => {
  const address = tryCall(() => new URL(url, page.location?.href));
  if (!/^https?:\/\/[^/@]+\//.test(String(address)))
    throw invalidOption('url', 'an http: or https: address without credentials');
  return String(address);
};
