import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { type BackoffOptions, resolveBackoff } from '../feed/backoff.js';
import type { Verdict } from '../protocol/failures/meanings.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { isText, tryCall } from '../protocol/type-guards.js';
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
} from '../protocol/validate.js';
import { pageGlobals } from './page-globals.js';

/** Stores the id of the last message. `sessionStorage` implements it. */
export interface ResumeStore {
  /** Returns the stored value; `null` if there is none. */
  getItem(key: string): string | null;
  /** Stores a value. */
  setItem(key: string, value: string): void;
}

/** The options of `relayFeed$`. */
export interface RelayFeedOptions {
  /**
   * Headers of the request, such as your app's bearer token. Pass a function (it may be async) to renew a token: it's
   * called before each request. @defaultValue none
   */
  readonly headers?: RequestHeaders | (() => RequestHeaders | Promise<RequestHeaders>) | undefined;
  /** Whether the request sends cookies, as in `fetch`. @defaultValue `'same-origin'` */
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined;
  /** How long to wait for the relay's first message, in ms. @defaultValue 10 000 */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * How long the relay may send no bytes before this client closes the connection, in ms. Relays send a heartbeat every
   * 15 s.
   *
   * @defaultValue 45 000
   */
  readonly idleTimeoutMs?: number | undefined;
  /** Changes to the default reconnect policy. */
  readonly backoff?: BackoffOptions | undefined;
  /**
   * How many stops of the feed in a row make this Observable error: an integer, or `Infinity`. Until then the page
   * reconnects, with backoff. `opened` restarts the count. @defaultValue 5
   */
  readonly maxFeedStops?: number | undefined;
  /** Returns the verdict for a failure, as in `tradeFeed$`. Called with the failure and the default verdict. */
  readonly classify?: ((failure: TradeFeedError, verdict: Verdict) => Verdict) | undefined;
  /**
   * Where the id of the last message is stored, so that a page resumes after a reload: `sessionStorage`.
   *
   * @defaultValue none: the id is lost with the subscription
   */
  readonly resumeIn?: ResumeStore | undefined;
  /**
   * `'share'`: all tabs of this browser with the same `url` share one stream, which one of them receives. If that tab
   * doesn't answer for 4 s, another one takes over. A tab that can't share has a separate stream. They must belong to the
   * same signed-in user, so unsubscribe when the user signs out. @defaultValue `'separate'`
   */
  readonly tabs?: 'share' | 'separate' | undefined;
  /** Clock and timers, for tests. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** Names and values of HTTP headers. */
export type RequestHeaders = Readonly<Record<string, string>>;

export type RelayFeedSettings = ReturnType<typeof resolveRelayFeed>;

const noHeaders: RequestHeaders = {};

const defaults = Object.freeze({
  headers: noHeaders,
  credentials: 'same-origin',
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 45_000,
  maxFeedStops: 5,
  scheduler: asyncScheduler,
} as const);

/** @throws TypeError for what `fetch` refuses. The message leaves out the name and the value, which may be a token */
export const requestHeaders = (fields: RequestHeaders): Headers => {
  const headers = tryCall(() => new Headers(fields));
  if (headers === undefined) throw new TypeError("A header isn't valid.");
  return headers;
};

// Checked up front, because every request would fail.
const areHeaders = (value: unknown): boolean =>
  anObject.is(value) &&
  Object.values(value as RequestHeaders).every(isText) &&
  tryCall(() => requestHeaders(value as RequestHeaders)) !== undefined;

export const relayFeedRules: Readonly<Record<keyof RelayFeedOptions, Rule>> = {
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

export const resolveRelayFeed = (url: string | URL, options: RelayFeedOptions = {}) => {
  const checked = validated(options, relayFeedRules);
  return { ...defaults, ...checked, url: addressOf(url), backoff: resolveBackoff(checked.backoff) };
};

const addressOf = (url: string | URL): string => {
  const address = tryCall(() => new URL(url, pageGlobals.location?.href));
  if (!/^https?:\/\/[^/@]+\//.test(String(address)))
    throw invalidOption('url', 'an http: or https: address without credentials');
  return String(address);
};
