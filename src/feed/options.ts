import { X509Certificate } from 'node:crypto';
import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { type ConnectionOptions, createSecureContext, type SecureContextOptions } from 'node:tls';
import { isLoopback } from '../protocol/contract.js';
import { createFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { invalidOptions, type Verdict } from '../protocol/failures/meanings.js';
import { credentialEdge, excessOf, isCredential, Secret } from '../protocol/secret.js';
import { isText, isUrl, tryCall } from '../protocol/type-guards.js';
import {
  aBoolean,
  aFunction,
  anObject,
  durationMs,
  objectWith,
  oneOf,
  positiveCount,
  positiveMs,
  refusedOption,
  type Rule,
  validated,
} from '../protocol/validate.js';
import { type BackoffOptions, type BackoffPolicy, resolveBackoff } from './backoff.js';

/**
 * TLS options for a private service, used by the ticket request and the handshake. Any other name is `invalid-options`:
 * only `baseUrl` and the ticket decide where to connect.
 */
export type TlsOptions = SecureContextOptions &
  Pick<ConnectionOptions, 'servername' | 'checkServerIdentity' | 'rejectUnauthorized'>;

/** A Dispatcher of undici 7 or 8. Their own types don't fit each other. */
export interface TicketDispatcher {
  /** Sends a request. */
  dispatch(options: object, handler: object): boolean;
  /** Adds interceptors. */
  compose(...interceptors: never[]): object;
}

/** The options of a feed. All are optional: `baseUrl` and `apiKey` can come from the environment. */
export interface TradeFeedOptions {
  /**
   * The HTTPS base address of the service, as a text or a `URL`; it may have a path. `http:` is accepted only for a
   * loopback host.
   * @defaultValue the environment variable `TRADE_FEED_BASE_URL`
   */
  readonly baseUrl?: string | URL | undefined;
  /**
   * The API key, or a function, possibly async, that returns it. It's called before every ticket request, so you can
   * rotate keys, and must return within `ticketTimeoutMs`.
   * @defaultValue the environment variable `TRADE_FEED_API_KEY`
   */
  readonly apiKey?: string | Secret | (() => string | Promise<string>) | undefined;
  /** Absolute deadline of the ticket request, in ms. @defaultValue 10 000 */
  readonly ticketTimeoutMs?: number | undefined;
  /**
   * Absolute deadline of the handshake, in ms. If the ticket expires before that, the handshake ends then, and the next
   * attempt ignores the expiry, because a clock may be wrong. @defaultValue 10 000
   */
  readonly handshakeTimeoutMs?: number | undefined;
  /**
   * How long the connection may be silent, in ms, before the feed sends a ping. If nothing arrives within the same time
   * again, at most 5 s, it closes the connection. 0 disables both. @defaultValue 30 000
   */
  readonly idleTimeoutMs?: number | undefined;
  /** Size limit of a frame, in bytes. A larger frame ends the connection. @defaultValue 16 777 216 (16 MiB) */
  readonly maxFrameBytes?: number | undefined;
  /**
   * How long the service holds each frame back, in ms: from 0 to 60 000. A connection is complete only after that time,
   * because what the service saw before the handshake never arrives, so an outage has its `gap` until then.
   *
   * `'auto'`: 500 (contract, section 8: the Free plan), unless a frame comes before that and proves that the account has
   * no delay. `0` is for an account on the Developer plan: the gap ends at `opened`, also while the feed is quiet. Any
   * other number is waited for whatever comes: frames that come earlier are emitted, with a gap before the first one
   * and another one after that time. Use 500 if your service may send old frames after a reconnect.
   * @defaultValue `'auto'`
   */
  readonly deliveryDelayMs?: 'auto' | number | undefined;
  /** The reconnect policy, where it differs from the default. */
  readonly backoff?: BackoffOptions | undefined;
  /** Returns the verdict for a failure, given the failure and its default verdict. */
  readonly classify?: ((failure: TradeFeedError, verdict: Verdict) => Verdict) | undefined;
  /**
   * A private CA and the like: see {@link TlsOptions}. A `dispatcher` ignores them; it has its own TLS options.
   * `rejectUnauthorized: false` would send the key to any server that answers: set `ca` instead.
   */
  readonly tls?: TlsOptions | undefined;
  /**
   * While the feed streams, keeps one idle connection to the ticket endpoint and one to the origin of the last
   * `wss_url`, so it can reconnect faster. Sends nothing over them and requests no ticket early. Doesn't affect the
   * connections of a `dispatcher` or an `agent`. @defaultValue `false`
   */
  readonly standby?: boolean | undefined;
  /**
   * Where to receive the feed: on this thread, or in a worker thread, which keeps reading while this thread is blocked.
   * With `'worker'`, `apiKey` may still be a function, which runs on this thread. The other functions (`classify`,
   * `backoff.random`, `tls.checkServerIdentity`), and `dispatcher`, `agent` and `backoff.scheduler` are
   * `invalid-options`. `requestTicket` and `openConnection` always work on the thread that calls them. @defaultValue
   * `'main'`
   */
  readonly receiveIn?: 'main' | 'worker' | undefined;
  /**
   * How many bytes of frames the worker of `receiveIn: 'worker'` stores while this thread is blocked. Beyond that, it
   * drops the oldest frames and reports them in a `gap`. @defaultValue 268 435 456 (256 MiB)
   */
  readonly receiveBufferBytes?: number | undefined;
  /**
   * Whether `tradeFeed$` emits a process warning (`process.emitWarning`) if its first three attempts fail or no
   * connection opens within 5 s, once per subscription. `tradeFeedEvents$` emits events instead. Both warn if another
   * feed in this process uses the same account.
   * @defaultValue `true`
   */
  readonly warnings?: boolean | undefined;
  /** A Dispatcher of undici 7 or 8 for the ticket request, to go through a proxy. */
  readonly dispatcher?: TicketDispatcher | undefined;
  /** An agent for the handshake, to go through a proxy. */
  readonly agent?: HttpAgent | HttpsAgent | undefined;
}

export interface Settings extends TradeFeedOptions {
  readonly baseUrl?: string | undefined;
  readonly apiKey?: Secret | (() => string | Promise<string>);
  readonly ticketTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxFrameBytes: number;
  readonly deliveryDelayMs: 'auto' | number;
  readonly backoff: BackoffPolicy;
}

export interface TicketSettings extends Settings {
  readonly baseUrl: string;
  readonly apiKey: Secret | (() => string | Promise<string>);
}

const defaults = Object.freeze({
  ticketTimeoutMs: 10_000,
  handshakeTimeoutMs: 10_000,
  idleTimeoutMs: 30_000,
  maxFrameBytes: 16 * 1024 * 1024,
  deliveryDelayMs: 'auto' as const,
});

/** Continues a sentence that starts with `baseUrl`. Never shows what could be a key, a password or a query. */
const baseUrlProblem = (given: unknown): string | undefined => {
  const value = isUrl(given) ? given.href : given;
  if (!isText(value) || value === '') return undefined;
  if (/\s/.test(value)) return 'contains a space or a line break. Remove it';
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(value))
    return `has no scheme${isHost(value) ? `: "${value}"` : ''}. Begin it with ${schemeFor(value)}`;
  if (!URL.canParse(value)) return "isn't a complete address. Write it as https://feed.example.com";
  const url = new URL(value);
  if (url.username !== '' || url.password !== '')
    return 'contains a user name or a password. Remove them: the key goes into `apiKey`';
  if (/[?#]/.test(value)) return 'contains a query or a fragment. Remove everything from ? or # on';
  const shown = `is ${url.origin === 'null' ? url.protocol : url.origin + url.pathname.replace(/\/$/, '')}`;
  if (!/^https?:$/.test(url.protocol)) return `${shown}. Begin it with https://`;
  if (url.protocol === 'http:' && !isLoopback(url))
    return (
      `${shown}: without TLS, anybody on the network could read your key. ` +
      'Begin it with https:// (http:// works for this machine only)'
    );
  if (/\/v1\/wss\/tickets\/*$/.test(url.pathname))
    return `${shown}, which is the ticket endpoint. Remove /v1/wss/tickets: the feed adds it`;
  return undefined;
};

const isHost = (text: string): boolean =>
  text.length <= 80 && /^(localhost|([a-z\d-]+\.)+[a-z]{2,12}|\d+(\.\d+){3}|\[::1\])(:\d+)?\/?$/i.test(text);

// The service of another machine has TLS: `http:` is refused there, also in a private network.
const schemeFor = (address: string): string => {
  const url = tryCall(() => new URL(`http://${address}`));
  return url !== undefined && isLoopback(url) ? 'http://' : 'https://';
};

// `createSecureContext` checks their values: see `isTls`.
const anything: Rule = { allowed: 'an option of node:tls', is: () => true };

// Refuses all other names: `tls.connect` accepts a `host`, a `port` or a `socket`, and would send the key there.
const tlsRules: Readonly<Record<keyof TlsOptions, Rule>> = {
  ca: { allowed: 'certificates in PEM', is: (v) => [v].flat().every((pem) => areCertificates(String(pem))) },
  cert: anything,
  key: anything,
  passphrase: { allowed: 'a string', isSecret: true, is: isText },
  pfx: anything,
  crl: anything,
  servername: { allowed: 'a host name', is: isText },
  checkServerIdentity: aFunction,
  rejectUnauthorized: aBoolean,
  allowPartialTrustChain: aBoolean,
  minVersion: anything,
  maxVersion: anything,
  ciphers: anything,
  sigalgs: anything,
  ecdhCurve: anything,
  dhparam: anything,
  honorCipherOrder: aBoolean,
  secureOptions: anything,
  secureProtocol: anything,
  ALPNCallback: aFunction,
  clientCertEngine: anything,
  privateKeyEngine: anything,
  privateKeyIdentifier: anything,
  sessionIdContext: anything,
  sessionTimeout: anything,
  ticketKeys: anything,
};

const isTls = (value: unknown): boolean =>
  anObject.is(value) && tryCall(() => createSecureContext(value as SecureContextOptions)) !== undefined;

// `createSecureContext` ignores an invalid CA, and the connection would fail as if the server weren't trusted.
const areCertificates = (pem: string): boolean => {
  const blocks = pem.match(
    /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----.+?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/gs,
  );
  return blocks?.every((block) => tryCall(() => new X509Certificate(block)) !== undefined) ?? false;
};

const anApiKey = 'a string of visible ASCII characters without spaces, or a function that returns one';

export const feedOptionRules: Readonly<Record<keyof TradeFeedOptions, Rule>> = {
  baseUrl: {
    allowed: 'an https: address (http: only for a loopback host) without credentials, query or fragment',
    problem: baseUrlProblem,
    is: (v) => (isUrl(v) || (isText(v) && v !== '')) && baseUrlProblem(v) === undefined,
  },
  apiKey: {
    allowed: anApiKey,
    isSecret: true,
    problem: (v) => credentialEdge(v) ?? `must be ${anApiKey}${excessOf(v)}`,
    is: (v) => typeof v === 'function' || v instanceof Secret || isCredential(v),
  },
  ticketTimeoutMs: positiveMs,
  handshakeTimeoutMs: positiveMs,
  idleTimeoutMs: durationMs,
  maxFrameBytes: {
    allowed: 'a whole number of bytes from 1 to 2147483647',
    is: (v) => Number.isInteger(v) && (v as number) > 0 && (v as number) < 2 ** 31,
  },
  deliveryDelayMs: {
    allowed: "'auto' or a number of ms from 0 to 60000",
    is: (v) => v === 'auto' || (durationMs.is(v) && (v as number) <= 60_000),
  },
  backoff: anObject,
  classify: aFunction,
  tls: { allowed: 'an object of options for node:tls, with certificates and keys in PEM', is: isTls },
  standby: aBoolean,
  receiveIn: oneOf('main', 'worker'),
  receiveBufferBytes: positiveCount,
  warnings: aBoolean,
  dispatcher: objectWith('compose', 'a Dispatcher of undici 7 or 8'),
  agent: objectWith('addRequest', 'an http.Agent or https.Agent'),
};

// Marks settings as validated, so that it's done only once.
const isResolved = Symbol('resolved');

/** Returns validated settings unchanged. */
export const resolveOptions = (options: TradeFeedOptions = {}): Settings => {
  if (Object.hasOwn(Object(options) as object, isResolved)) return options as Settings;
  const valid = validated<TradeFeedOptions>(options, feedOptionRules);
  validated<TlsOptions>(valid.tls ?? {}, tlsRules, 'tls.');
  return {
    ...defaults,
    ...valid,
    ...(isUrl(valid.baseUrl) && { baseUrl: valid.baseUrl.href }),
    ...(typeof valid.apiKey === 'string' && { apiKey: new Secret(valid.apiKey) }),
    backoff: resolveBackoff(valid.backoff),
    [isResolved]: true,
  } as Settings;
};

/** Takes a missing address or key from the environment. */
export const resolveTicketOptions = (options: TradeFeedOptions = {}): TicketSettings => {
  const settings = resolveOptions(options);
  const missing = (['baseUrl', 'apiKey'] as const).filter(
    (name) => settings[name] === undefined && !process.env[variables[name]],
  );
  if (missing.length > 0) throw missingSettings(missing);
  const { baseUrl = fromEnvironment('baseUrl'), apiKey = fromEnvironment('apiKey') } = settings;
  return { ...settings, baseUrl, apiKey: typeof apiKey === 'string' ? new Secret(apiKey) : apiKey };
};

const variables = { baseUrl: 'TRADE_FEED_BASE_URL', apiKey: 'TRADE_FEED_API_KEY' } as const;

const fromEnvironment = (name: keyof typeof variables): string => {
  const value = process.env[variables[name]] as string;
  const rule = feedOptionRules[name];
  if (!rule.is(value)) throw refusedOption(name, rule, value, `(from ${variables[name]}) `);
  return value;
};

const missingSettings = (missing: readonly (keyof typeof variables)[]): TradeFeedError => {
  const names = missing.map((name) => `\`${name}\``).join(' and ');
  const them = missing.length === 1 ? ['it', 'an option'] : ['them', 'options'];
  return createFailure(
    {
      ...invalidOptions,
      meaning: `Missing ${names}.`,
      advice:
        `Pass ${them[0]} as ${them[1]}, or set ${missing.map((name) => variables[name]).join(' and ')}. ` +
        'No account? Run `npx rx-trade-feed serve`: it prints what to set.',
    },
    { stage: 'ticket', option: missing[0] },
  );
};
