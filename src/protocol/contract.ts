import type { Feed } from './feed.js';
import { isCredential } from './secret.js';
import { isText, tryCall } from './type-guards.js';
import { oneOf, validated } from './validate.js';

/**
 * Names the WebSocket close codes of the service (contract, section 7.3).
 *
 * @example
 * ```ts
 * import { CloseCode } from 'rx-trade-feed';
 *
 * CloseCode.connectionReplaced; // 4001
 * ```
 */
export const CloseCode = {
  /** The service is shutting down: reconnect with backoff. */
  serverShutdown: 1001,
  /** The client sent a message: fix that before you reconnect. */
  serverPushOnly: 1008,
  /** The client didn't keep up with the stream. */
  clientTooSlow: 1013,
  /** The user's newer connection replaced this one: don't reconnect. */
  connectionReplaced: 4001,
  /** Access expired or was revoked: see the reason. */
  accessLost: 4003,
} as const;
export type CloseCode = (typeof CloseCode)[keyof typeof CloseCode];

/** Names the close reasons of the service, exactly as sent (contract, section 7.3). */
export const CloseReason = {
  serverShutdown: 'server shutdown',
  serverPushOnly: 'server push only',
  clientTooSlow: 'client too slow',
  connectionReplaced: 'connection replaced',
  accessExpired: 'access expired',
  accessRevoked: 'access revoked',
} as const;
export type CloseReason = (typeof CloseReason)[keyof typeof CloseReason];

export const feeds = ['market', 'raw'] as const satisfies readonly Feed[];

export const isFeed = (value: unknown): value is Feed => feeds.includes(value as Feed);

export const checkFeed = (feed: unknown): void => {
  validated({ feed }, { feed: oneOf(...feeds) });
};

/** Returns whether a URL points at this machine, the only place where a connection without TLS is allowed. */
export const isLoopback = (url: URL): boolean => /^(localhost|\[::1\]|127(\.\d{1,3}){3})$/.test(url.hostname);

// RFC 3339, 5.6. A leap second (:60) is valid, but `Date.parse` rejects it.
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

export const parseTimestamp = (text: string): number =>
  rfc3339.test(text) ? Date.parse(text.toUpperCase().replace(/:60(?=[.Z+-])/, ':59')) : NaN;

/** The JSON object of the ticket response (contract, section 2.1). */
export interface WireTicket {
  readonly ticket: string;
  readonly token_type: 'Bearer';
  readonly expires_at: string;
  readonly wss_url: string;
  readonly feed: Feed;
  readonly subprotocol: string;
}

// RFC 9110, 5.6.2: a subprotocol is a token.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const isSocketUrl = (text: string): boolean => {
  const url = /\s/.test(text) ? undefined : tryCall(() => new URL(text));
  if (url === undefined || url.hash + url.username + url.password !== '') return false;
  return url.protocol === 'wss:' || (url.protocol === 'ws:' && isLoopback(url));
};

/**
 * Checks the fields of a ticket response, in the order of the contract. The codec and the parser share these checks:
 * the parser works without io-ts, which takes longer to load than the rest of this package.
 */
export const ticketFields = {
  ticket: isCredential,
  token_type: (value: unknown) => value === 'Bearer',
  expires_at: (value: unknown) => isText(value) && !Number.isNaN(parseTimestamp(value)),
  wss_url: (value: unknown) => isText(value) && isSocketUrl(value),
  feed: isFeed,
  subprotocol: (value: unknown) => isText(value) && token.test(value),
} satisfies { readonly [Field in keyof WireTicket]: (value: unknown) => boolean };
