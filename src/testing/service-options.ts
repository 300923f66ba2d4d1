import { validateHeaderName, validateHeaderValue } from 'node:http';
import { asyncScheduler, isObservable, type Observable, type SchedulerLike } from 'rxjs';
import { feeds, isLoopback, ticketFields } from '../protocol/contract.js';
import type { Feed } from '../protocol/feed.js';
import { isBytes, isNumber, isText, isUrl, tryCall } from '../protocol/type-guards.js';
import {
  aCount,
  aFunction,
  anObject,
  aScheduler,
  checkRequired,
  integerIn,
  MAX_TIMER_MS,
  type Rule,
  timerMs,
  validated,
} from '../protocol/validate.js';
import { defaultErrorBody, type ErrorBody } from './answers.js';

/** A plan (contract, section 1): `free` delays each frame by `limits.freeDelayMs`, `developer` does not. */
export type Plan = 'free' | 'developer';

/** The limits of the service. Two defaults come from the contract; this library chose the others. */
export interface ServiceLimits {
  /** How long a ticket is valid, in ms. @defaultValue 60 000 (contract, section 8) */
  readonly ticketLifetimeMs: number;
  /** How long the fixed window of ticket requests lasts, in ms. @defaultValue 60 000 */
  readonly windowMs: number;
  /** How many ticket requests an account gets per window. @defaultValue 60 */
  readonly ticketsPerWindow: number;
  /** How many users can have a live connection; one more gets 503. @defaultValue Infinity */
  readonly capacity: number;
  /**
   * How many bytes may wait for a slow client. If there are more when the next frame is sent, the service closes the
   * connection with 1013. Frames that the Free plan's delay holds back don't count.
   * @defaultValue 1 MiB
   */
  readonly backlogBytes: number;
  /** The delay of each frame on the Free plan, in ms. @defaultValue 500 (contract, section 8) */
  readonly freeDelayMs: number;
  /** The largest body of a ticket request, in bytes; a larger one gets 413. @defaultValue 16 KiB */
  readonly requestBytes: number;
  /** How long a client may take to send a request, in ms, before it gets 408. @defaultValue 10 000 */
  readonly requestTimeoutMs: number;
  /** How long a client may take to answer a close frame, in ms, before its socket is destroyed. @defaultValue 10 000 */
  readonly closeTimeoutMs: number;
  /** How long `shutdown()` waits for clients, in ms, before it destroys their sockets. @defaultValue 1 000 */
  readonly shutdownTimeoutMs: number;
}

/** One payload of a feed: a string becomes a text frame, bytes become a binary frame. */
export type Payload = string | Uint8Array;

/** The source of each feed's payloads. */
export type ServiceSources = { readonly [F in Feed]?: Observable<Payload> | undefined };

/** The options of {@link startTradeFeedService}. */
export interface TradeFeedServiceOptions {
  /** The port on 127.0.0.1; 0 picks a free one. @defaultValue 0 */
  readonly port?: number | undefined;
  /** Key and certificate in PEM, for `https:` and `wss:`. @defaultValue none: `http:` and `ws:` */
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined;
  /**
   * The address for clients that connect through a proxy, for example one that terminates TLS: an origin with `https:`,
   * or with `http:` for a loopback host. Changes the `wss_url` of tickets, but not `baseUrl`.
   * @defaultValue the address of the service
   */
  readonly publicUrl?: string | URL | undefined;
  /**
   * The payloads of each feed. The service subscribes once to each Observable, from start to shutdown, and sends its
   * payloads to all open connections of the feed. @defaultValue none: only `push` sends payloads
   */
  readonly sources?: ServiceSources | undefined;
  /** See {@link ServiceLimits}. */
  readonly limits?: { readonly [L in keyof ServiceLimits]?: ServiceLimits[L] | undefined } | undefined;
  /** The subprotocol of each feed. The contract doesn't show the one of `raw`: `mmp.pending-transaction.v1` is ours. */
  readonly subprotocols?: { readonly [F in Feed]?: string | undefined } | undefined;
  /** The JSON body of a refusal. @defaultValue `{ "error": { "code": …, "message": … } }` */
  readonly errorBody?: ErrorBody | undefined;
  /** The clock of tickets, windows and the Free plan's delay. @defaultValue real time */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The options with all defaults filled in. */
export interface ServiceSettings {
  readonly port: number;
  readonly tls: TradeFeedServiceOptions['tls'];
  readonly publicUrl: string | URL | undefined;
  readonly sources: ServiceSources;
  readonly limits: ServiceLimits;
  readonly subprotocols: Readonly<Record<Feed, string>>;
  readonly errorBody: ErrorBody;
  readonly scheduler: SchedulerLike;
}

/** What an endpoint does with a request. It follows the contract unless you set `status`, `headers` or `body`. */
export interface EndpointAnswer {
  /** How long to delay the answer, in ms. @defaultValue 0 */
  readonly delayMs?: number | undefined;
  /** The status of the answer, from 200 to 599. @defaultValue 200 */
  readonly status?: number | undefined;
  /** Headers of the answer, such as `Retry-After`. @defaultValue those of a JSON body */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The body of the answer, sent unchanged. @defaultValue empty */
  readonly body?: string | undefined;
}

/** What the handshake does. */
export interface HandshakeAnswer extends EndpointAnswer {
  /** The subprotocol that an accepted handshake agrees to. @defaultValue the requested one */
  readonly subprotocol?: string | undefined;
}

/** How the ticket endpoint behaves: `normal` follows the contract, `unreachable` cuts each request's connection. */
export type TicketEndpointBehavior = 'normal' | 'unreachable' | EndpointAnswer;

/** How the handshake behaves: `normal` follows the contract, `unreachable` cuts the connection of each handshake. */
export type HandshakeBehavior = 'normal' | 'unreachable' | HandshakeAnswer;

export const waitingFrames = ['drop', 'send-when-due', 'send-on-reconnect'] as const satisfies readonly WaitingFrames[];

/** What becomes of the frames that wait for the Free plan's delay when a connection closes. */
export type WaitingFrames = 'drop' | 'send-when-due' | 'send-on-reconnect';

export interface Endpoints {
  ticket: TicketEndpointBehavior;
  handshake: HandshakeBehavior;
}

/** Real time in epoch ms, with the monotonic clock's fractions: a delay of 500 ms mustn't end after 499.9 ms. */
export const systemScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: (...args: Parameters<SchedulerLike['schedule']>) => asyncScheduler.schedule(...args),
};

export const duration: Rule = {
  allowed: `a number of ms, from 0 to ${MAX_TIMER_MS}`,
  is: (v) => isNumber(v) && v >= 0 && v <= MAX_TIMER_MS,
};

const limitTable: OfEachLimit<readonly [byDefault: number, rule: Rule]> = {
  ticketLifetimeMs: [60_000, duration],
  windowMs: [60_000, timerMs],
  ticketsPerWindow: [60, aCount(0)],
  capacity: [Infinity, aCount(0)],
  backlogBytes: [1024 * 1024, aCount(0)],
  freeDelayMs: [500, duration],
  requestBytes: [16 * 1024, aCount(0)],
  requestTimeoutMs: [10_000, timerMs],
  closeTimeoutMs: [10_000, duration],
  shutdownTimeoutMs: [1_000, duration],
};
type OfEachLimit<T> = Readonly<Record<keyof ServiceLimits, T>>;
const eachLimit = <T>(valueOf: (row: readonly [number, Rule]) => T) =>
  Object.fromEntries(Object.entries(limitTable).map(([name, row]) => [name, valueOf(row)])) as OfEachLimit<T>;
const limitRules = eachLimit(([, rule]) => rule);

/** The defaults of the service's options. */
export const serviceDefaults: ServiceSettings = Object.freeze({
  port: 0,
  tls: undefined,
  publicUrl: undefined,
  sources: Object.freeze({}),
  limits: Object.freeze(eachLimit(([byDefault]) => byDefault)),
  subprotocols: Object.freeze({ market: 'mmp.trade-batch.v1', raw: 'mmp.pending-transaction.v1' }),
  errorBody: defaultErrorBody,
  scheduler: systemScheduler,
});

export const serviceSettings = (options: TradeFeedServiceOptions): ServiceSettings => {
  const { limits = {}, subprotocols = {}, tls, sources = {}, ...others } = validated(options, rules);
  if (tls) checkRequired(tls, pemRules, 'tls.');
  return {
    ...serviceDefaults,
    ...others,
    tls: tls && validated(tls, pemRules, 'tls.'),
    sources: validated(sources, perFeed(observable), 'sources.'),
    limits: { ...serviceDefaults.limits, ...validated(limits, limitRules, 'limits.') },
    subprotocols: { ...serviceDefaults.subprotocols, ...validated(subprotocols, perFeed(token), 'subprotocols.') },
  };
};

export const checkBehavior = (endpoint: keyof Endpoints, behavior: Endpoints[keyof Endpoints]): void => {
  checkRequired({ behavior }, { behavior: aBehavior });
  if (typeof behavior === 'object') validated<HandshakeAnswer>(behavior, answerRules[endpoint], 'behavior.');
};

const isHeader = ([name, value]: readonly [string, unknown]): boolean =>
  tryCall(() => {
    validateHeaderName(name);
    validateHeaderValue(name, value as string);
    return true;
  }) === true;
const someHeaders: Rule = {
  allowed: 'an object of HTTP headers, such as { "Retry-After": "1" }',
  is: (v) => anObject.is(v) && Object.entries(v as object).every(isHeader),
};

const token: Rule = {
  allowed: 'a token of RFC 9110 (5.6.2), such as "mmp.trade-batch.v1"',
  is: ticketFields.subprotocol,
};
const aBehavior: Rule = {
  allowed: '"normal", "unreachable" or an object that describes the answer',
  is: (v) => v === 'normal' || v === 'unreachable' || anObject.is(v),
};
const answer = {
  delayMs: duration,
  status: integerIn(200, 599),
  headers: someHeaders,
  body: { allowed: 'a string', is: isText },
};
const answerRules: Readonly<Record<keyof Endpoints, Readonly<Record<string, Rule>>>> = {
  ticket: answer,
  handshake: { ...answer, subprotocol: token },
};

export const aPort = integerIn(0, 65_535);
const pem: Rule = { allowed: 'a PEM text or a Buffer', is: (v) => isText(v) || isBytes(v) };
const pemRules = { key: pem, cert: pem };
const observable: Rule = { allowed: 'an Observable of strings or bytes', is: isObservable };
const perFeed = (rule: Rule) => Object.fromEntries(feeds.map((feed) => [feed, rule])) as Record<Feed, Rule>;

// Clients accept a `wss_url` without TLS only for a loopback host, so the same rule applies here.
const isOrigin = (given: unknown): boolean => {
  const value = isUrl(given) ? given.href : given;
  if (!isText(value) || !/^https?:\/\/[^/\s?#@\\]+\/?$/i.test(value) || !URL.canParse(value)) return false;
  const url = new URL(value);
  return url.protocol === 'https:' || isLoopback(url);
};

const rules: Readonly<Record<keyof TradeFeedServiceOptions, Rule>> = {
  port: aPort,
  tls: anObject,
  publicUrl: { allowed: 'an origin, such as "https://feed.example"; http: only for a loopback host', is: isOrigin },
  sources: anObject,
  limits: anObject,
  subprotocols: anObject,
  errorBody: aFunction,
  scheduler: aScheduler,
};
