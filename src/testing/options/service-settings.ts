import { asyncScheduler, isObservable, type SchedulerLike } from 'rxjs';
import { feeds } from '../../protocol/feed-names.js';
import { isLoopback } from '../../protocol/loopback.js';
import { defaultErrorBody } from '../http/refusal.js';
import {
  type Check,
  checkOptions,
  count,
  definedOnly,
  type Group,
  numberIn,
  scheduler,
  integerIn,
} from './check-options.js';
import type { ServiceLimits, ServiceSettings, TradeFeedServiceOptions } from './service-options.js';

/** Real time in epoch ms, with fractions, from the monotonic clock. So a delay of 500 ms never ends after 499.9 ms. */
export const systemScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: (...args: Parameters<SchedulerLike['schedule']>) => asyncScheduler.schedule(...args),
};

/** The defaults of the service's options. */
export const serviceDefaults: ServiceSettings = Object.freeze({
  port: 0,
  tls: undefined,
  publicUrl: undefined,
  sources: Object.freeze({}),
  limits: Object.freeze({
    ticketLifetimeMs: 60_000,
    windowMs: 60_000,
    ticketsPerWindow: 60,
    capacity: Infinity,
    backlogBytes: 1024 * 1024,
    freeDelayMs: 500,
    requestBytes: 16 * 1024,
    requestTimeoutMs: 10_000,
    closeTimeoutMs: 10_000,
    shutdownTimeoutMs: 1_000,
  }),
  subprotocols: Object.freeze({ market: 'mmp.trade-batch.v1', raw: 'mmp.pending-transaction.v1' }),
  errorBody: defaultErrorBody,
  scheduler: systemScheduler,
});

/**
 * Checks the options and adds the defaults. Does not change the caller's object.
 *
 * @throws TypeError that names the option and the allowed values
 */
export const serviceSettings = (options: TradeFeedServiceOptions = {}): ServiceSettings => {
  checkOptions(options, { within: checks });
  return {
    ...serviceDefaults,
    ...definedOnly(options),
    limits: { ...serviceDefaults.limits, ...definedOnly(options.limits) },
    subprotocols: { ...serviceDefaults.subprotocols, ...definedOnly(options.subprotocols) },
  };
};

const longestMs = 2 ** 31 - 1;
const duration = numberIn(0, longestMs, 'ms');
const positive = numberIn(1, longestMs, 'ms');
const pem: Check = [(value) => typeof value === 'string' || value instanceof Uint8Array, 'a PEM text or a Buffer'];
const observable: Check = [isObservable, 'an Observable of strings or bytes'];
// Clients accept a `wss_url` without TLS only if its host is this machine, so the same rule applies here.
const isOrigin = (value: unknown): boolean => {
  if (typeof value !== 'string' || !/^https?:\/\/[^/\s?#@\\]+\/?$/i.test(value) || !URL.canParse(value)) return false;
  const url = new URL(value);
  return url.protocol === 'https:' || isLoopback(url);
};
const origin: Check = [isOrigin, 'an origin, such as "https://feed.example"; http: only for a loopback host'];
// RFC 9110, 5.6.2: a subprotocol is a token.
const token: Check = [
  (value) => typeof value === 'string' && /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value),
  'a token of RFC 9110, such as "mmp.trade-batch.v1"',
];

const limitChecks: Readonly<Record<keyof ServiceLimits, Check>> = {
  ticketLifetimeMs: duration,
  windowMs: positive,
  ticketsPerWindow: count,
  capacity: count,
  backlogBytes: count,
  freeDelayMs: duration,
  requestBytes: count,
  requestTimeoutMs: positive,
  closeTimeoutMs: duration,
  shutdownTimeoutMs: duration,
};

const perFeed = (check: Check): Group => ({ within: Object.fromEntries(feeds.map((feed) => [feed, check])) });

const checks: Readonly<Record<keyof TradeFeedServiceOptions, Check | Group>> = {
  port: integerIn(0, 65_535),
  tls: { within: { key: pem, cert: pem }, all: true },
  publicUrl: origin,
  sources: perFeed(observable),
  limits: { within: limitChecks },
  subprotocols: perFeed(token),
  errorBody: [(value) => typeof value === 'function', 'a function'],
  scheduler,
};
