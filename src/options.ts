import { X509Certificate } from 'node:crypto';
import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { type ConnectionOptions, createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Dispatcher } from 'undici';
import type { Verdict } from './protocol/failures/failure-code.js';
import type { TradeFeedError } from './protocol/failures/trade-feed-error.js';
import { isLoopback } from './protocol/loopback.js';
import {
  aBoolean,
  aFunction,
  anObject,
  durationMs,
  invalidOption,
  objectWith,
  oneOf,
  positiveCount,
  positiveMs,
  type Rule,
  validated,
} from './protocol/rules.js';
import { isCredential, Secret } from './protocol/secret.js';
import { type BackoffOptions, type BackoffPolicy, resolveBackoff } from './reconnect/policy.js';

/**
 * TLS of a private service, for the ticket request and the handshake alike. Any other name is `invalid-options`: where to connect is
 * decided by `baseUrl` and by the ticket alone.
 */
export type TlsOptions = SecureContextOptions &
  Pick<ConnectionOptions, 'servername' | 'checkServerIdentity' | 'rejectUnauthorized'>;

/** Everything that can be set. All of it is optional where a default or an environment variable serves. */
export interface TradeFeedOptions {
  /**
   * The HTTPS base address of the service; it may have a path. `http:` is accepted for a loopback host alone.
   * @defaultValue the environment variable `TRADE_FEED_BASE_URL`
   */
  readonly baseUrl?: string | undefined;
  /**
   * The API key, or a function (it may be async) that is asked for it before every ticket, so that a key can rotate. The
   * function has `ticketTimeoutMs` of its own.
   * @defaultValue the environment variable `TRADE_FEED_API_KEY`
   */
  readonly apiKey?: string | Secret | (() => string | Promise<string>) | undefined;
  /** Absolute deadline of the ticket request, in ms. @defaultValue 10 000 */
  readonly ticketTimeoutMs?: number | undefined;
  /**
   * Absolute deadline of the handshake, in ms. A ticket that expires earlier ends it earlier, but not twice in a row: the clock that says
   * so may be wrong. @defaultValue 10 000
   */
  readonly handshakeTimeoutMs?: number | undefined;
  /**
   * Silence in ms after which a ping is sent; the connection is given up when the answer does not come within as long
   * again, or 5 s if that is less. 0 turns both off. @defaultValue 30 000
   */
  readonly idleTimeoutMs?: number | undefined;
  /** A larger frame ends the connection, in bytes. @defaultValue 16 777 216 (16 MiB) */
  readonly maxFrameBytes?: number | undefined;
  /** What differs from the default reconnect policy. */
  readonly backoff?: BackoffOptions | undefined;
  /** Overrides what a failure asks for; gets the failure and the verdict of the table. */
  readonly classify?: ((failure: TradeFeedError, verdict: Verdict) => Verdict) | undefined;
  /**
   * A private CA and the like: the names of {@link TlsOptions}, no others. It does not reach a `dispatcher`, which has its own.
   * `rejectUnauthorized: false` sends the key to any server that answers: give the `ca` instead.
   */
  readonly tls?: TlsOptions | undefined;
  /**
   * While the feed streams, keeps one connection ready to each of the two ends of a reconnect: the ticket endpoint and the origin
   * of the last `wss_url`. Nothing is sent over them, and no ticket is fetched ahead. Not where a `dispatcher` or an `agent`
   * connects. @defaultValue `false`
   */
  readonly standby?: boolean | undefined;
  /**
   * Where the feed is received: on this thread, or in a worker thread of its own, which reads on while this one is blocked. Functions that
   * are given here run on this thread all the same. `dispatcher`, `agent` and `backoff.scheduler` cannot go with `'worker'`.
   * `requestTicket` and `openConnection` alone always work on the thread that calls them. @defaultValue `'main'`
   */
  readonly receiveIn?: 'main' | 'worker' | undefined;
  /**
   * With `receiveIn: 'worker'`: how many bytes of frames wait in the worker while this thread is blocked; beyond that the oldest are
   * dropped, which a `gap` tells. @defaultValue 268 435 456 (256 MiB)
   */
  readonly receiveBufferBytes?: number | undefined;
  /** An undici Dispatcher for the ticket request, for a proxy. */
  readonly dispatcher?: Dispatcher | undefined;
  /** An agent for the handshake, for a proxy. */
  readonly agent?: HttpAgent | HttpsAgent | undefined;
}

/** The options after their one validation: defaults filled in, the key wrapped. Valid as options themselves. */
export interface Settings extends TradeFeedOptions {
  readonly apiKey?: Secret | (() => string | Promise<string>);
  readonly ticketTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxFrameBytes: number;
  readonly backoff: BackoffPolicy;
}

/** The settings of whoever requests a ticket. */
export interface TicketSettings extends Settings {
  readonly baseUrl: string;
  readonly apiKey: Secret | (() => string | Promise<string>);
}

const defaults = Object.freeze({
  ticketTimeoutMs: 10_000,
  handshakeTimeoutMs: 10_000,
  idleTimeoutMs: 30_000,
  maxFrameBytes: 16 * 1024 * 1024,
});

const isBaseUrl = (value: unknown): boolean => {
  if (typeof value !== 'string' || !URL.canParse(value) || /[\s?#]/.test(value)) return false;
  const url = new URL(value);
  const encrypted = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url));
  return encrypted && url.username === '' && url.password === '';
};

// `createSecureContext` judges the value of these: see `isTls`.
const anything: Rule = { allowed: 'an option of node:tls', is: () => true };

// No other name may be given: `tls.connect` would take a `host`, a `port` or a `socket` from here, and the key would go there.
const tlsRules: Readonly<Record<keyof TlsOptions, Rule>> = {
  ca: { allowed: 'certificates in PEM', is: (v) => [v].flat().every((pem) => areCertificates(String(pem))) },
  cert: anything,
  key: anything,
  passphrase: { allowed: 'a string', isSecret: true, is: (v) => typeof v === 'string' },
  pfx: anything,
  crl: anything,
  servername: { allowed: 'a host name', is: (v) => typeof v === 'string' },
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

const isTls = (value: unknown): boolean => {
  try {
    createSecureContext(value as SecureContextOptions);
    return typeof value === 'object' && value !== null;
  } catch {
    return false;
  }
};

// A CA that is no certificate is passed over by createSecureContext, and would look like an untrusted server.
const areCertificates = (pem: string): boolean => {
  const blocks = pem.match(
    /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----.+?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/gs,
  );
  return blocks?.every(isCertificate) ?? false;
};

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).serialNumber !== '';
  } catch {
    return false;
  }
};

/** What each option must be. */
export const feedOptionRules: Readonly<Record<keyof TradeFeedOptions, Rule>> = {
  baseUrl: {
    allowed: 'an https: address (http: for a loopback host alone) without credentials, query or fragment',
    is: isBaseUrl,
  },
  apiKey: {
    allowed: 'a text of visible ASCII characters without spaces, or a function that gives one',
    isSecret: true,
    is: (v) => typeof v === 'function' || v instanceof Secret || isCredential(v),
  },
  ticketTimeoutMs: positiveMs,
  handshakeTimeoutMs: positiveMs,
  idleTimeoutMs: durationMs,
  maxFrameBytes: {
    allowed: 'a whole number of bytes from 1 to 2147483647',
    is: (v) => Number.isInteger(v) && (v as number) > 0 && (v as number) < 2 ** 31,
  },
  backoff: anObject,
  classify: aFunction,
  tls: { allowed: 'an object of options for node:tls, with certificates and keys in PEM', is: isTls },
  standby: aBoolean,
  receiveIn: oneOf('main', 'worker'),
  receiveBufferBytes: positiveCount,
  dispatcher: objectWith('compose', 'a Dispatcher of undici 7'),
  agent: objectWith('addRequest', 'an http.Agent or https.Agent'),
};

// Marks what has been validated, so that the building blocks that are given it need not do it again.
const isResolved = Symbol('resolved');

/**
 * Validates options, fills in the defaults and wraps the key. Settings that it made before are given back as they are.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option and what is allowed, never a text that was given
 */
export const resolveOptions = (options: TradeFeedOptions = {}): Settings => {
  if (isSettings(options)) return options;
  const given = validated<TradeFeedOptions>(options, feedOptionRules);
  validated<TlsOptions>(given.tls ?? {}, tlsRules, 'tls.');
  return {
    ...defaults,
    ...given,
    ...(typeof given.apiKey === 'string' && { apiKey: new Secret(given.apiKey) }),
    backoff: resolveBackoff(given.backoff),
    [isResolved]: true,
  } as Settings;
};

const isSettings = (options: TradeFeedOptions | null): options is Settings =>
  Object.hasOwn(Object(options) as object, isResolved);

/** Does the same for whoever requests tickets: reads the environment where the address or the key is missing, and needs both. */
export const resolveTicketOptions = (options: TradeFeedOptions = {}): TicketSettings => {
  const settings = resolveOptions(options);
  const { baseUrl = fromEnvironment('baseUrl'), apiKey = fromEnvironment('apiKey') } = settings;
  return { ...settings, baseUrl, apiKey: typeof apiKey === 'string' ? new Secret(apiKey) : apiKey };
};

const variables = { baseUrl: 'TRADE_FEED_BASE_URL', apiKey: 'TRADE_FEED_API_KEY' } as const;

const fromEnvironment = (name: keyof typeof variables): string => {
  const value = process.env[variables[name]];
  if (!value) throw invalidOption(name, `given, or be in ${variables[name]}`);
  const { is, allowed } = feedOptionRules[name];
  if (!is(value)) throw invalidOption(name, `${allowed} (see ${variables[name]})`);
  return value;
};
