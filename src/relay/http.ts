import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { constants, type Http2Stream } from 'node:http2';
import type { Writable } from 'node:stream';
import type { Rule } from '../protocol/validate.js';
import type { RelayResponse } from './relay-options.js';

/** The origins whose pages may receive the feed. */
export type AllowedOrigins = readonly string[] | '*';

export const originsRule: Rule = {
  allowed: "'*' or a list of origins such as 'https://app.example.com'",
  is: (v) =>
    v === '*' ||
    (Array.isArray(v) && v.every((each) => URL.canParse(each as string) && new URL(each as string).origin === each)),
};

/** The result of the check of where a request comes from (Fetch, 3.2; Fetch Metadata, 2.4). */
export interface Cors {
  /** The text of a 403; `undefined` if the request is allowed. */
  readonly refusal?: string;
  /** The headers of every answer. Without them a page cannot read even the status. */
  readonly headers: Readonly<Record<string, string>>;
}

const originRefused = 'Pages of this origin may not receive the feed. To allow them, add the origin to `allowOrigins`.';
const siteRefused =
  'Another site made this request without CORS. Request the feed with `fetch` or `relayFeed$`, ' +
  'and add the origin to `allowOrigins`.';

/**
 * Checks where a request comes from. A request with the origin of the server is allowed, and a request without an
 * origin unless a browser says that another site made it: `no-cors` sends cookies, but no origin. Clients that are no
 * browsers send neither header.
 */
export const checkCors = ({ headers }: { readonly headers: IncomingHttpHeaders }, allowed: AllowedOrigins): Cors => {
  const { origin, host, 'sec-fetch-site': site, 'access-control-request-headers': requested } = headers;
  const varies = { vary: 'Origin' };
  // `none` is an address that a person typed.
  const isOfOtherSite = site !== undefined && site !== 'same-origin' && site !== 'none';
  if (origin === undefined && allowed !== '*' && isOfOtherSite) return { refusal: siteRefused, headers: varies };
  // The scheme may differ from that of the server, because a proxy may terminate TLS.
  if (origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)) return { headers: varies };
  if (allowed !== '*' && !allowed.includes(origin)) return { refusal: originRefused, headers: varies };
  const withCookies = { ...varies, 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' };
  const granted = allowed === '*' ? { 'access-control-allow-origin': '*' } : withCookies;
  const methods = { 'access-control-allow-methods': 'GET', 'access-control-expose-headers': 'Retry-After' };
  if (requested === undefined) return { headers: { ...granted, ...methods } };
  const preflight = { 'access-control-allow-headers': requested, 'access-control-max-age': '600' };
  return { headers: { ...granted, ...methods, ...preflight } };
};

/** A response of HTTP/1.1 or HTTP/2 that a relay writes to. */
export interface StreamResponse extends RelayResponse {
  /** Whether the client has left, or other code has ended the response. */
  readonly isOver: boolean;
  write(bytes: Uint8Array): void;
}

/**
 * Wraps a response. The compatibility API of HTTP/2 lacks `writableNeedDrain` and `destroyed`, so this uses the result of
 * `write`, `drain` and `close` instead.
 */
export const streamResponse = (response: ServerResponse): StreamResponse => {
  let isFull = false;
  destroyWhenAborted(response);
  // The listener below misses a `close` that was emitted before this call.
  let isGone = response.destroyed;
  response.on('drain', () => (isFull = false)).once('close', () => (isGone = true));
  return {
    get isOver() {
      return isGone || response.writableEnded;
    },
    get writableNeedDrain() {
      return isFull;
    },
    on: (event, listener) => response.on(event, listener),
    off: (event, listener) => response.off(event, listener),
    destroy: () => destroyResponse(response),
    write: (bytes) => {
      isFull = !response.write(bytes);
    },
  };
};

/** How long a client may take to read the end of a response, in ms. */
const graceMs = 1_000;

/** Destroys a response that the client does not read to the end in that time. */
export const waitForClose = async (response: Writable): Promise<void> => {
  try {
    // `finished` of node:stream resolves at once for a response that has ended, although the client has not read it.
    await once(response, 'close', { signal: AbortSignal.timeout(graceMs) });
  } catch {
    destroyResponse(response);
  }
};

/** Also discards the data that is not sent. */
export const destroyResponse = (response: Writable): void => {
  const stream = http2StreamOf(response);
  // A destroyed HTTP/2 stream still waits until its data is sent, so the server would not close. A reset does not.
  if (stream === undefined) response.destroy();
  else stream.close(constants.NGHTTP2_CANCEL);
};

/**
 * Destroys the HTTP/2 stream of a response as soon as the client resets it with NO_ERROR, and returns the stream;
 * `undefined` over HTTP/1.1. Node destroys a stream after any other reset. After this one it waits until the client has
 * read what was written, which it never does.
 */
export const destroyWhenAborted = (response: Writable): Http2Stream | undefined => {
  const stream = http2StreamOf(response);
  const destroy = () => {
    if (stream?.aborted === true && stream.rstCode === constants.NGHTTP2_NO_ERROR) stream.destroy();
  };
  destroy();
  return stream?.once('aborted', destroy);
};

/** Closes the connection after a response: the next request can reach a server that is not shutting down. */
export const closeConnectionAfter = (response: Writable): void => {
  const session = http2StreamOf(response)?.session;
  // Open streams continue, and the client opens new ones on another connection.
  if (session !== undefined) return session.close();
  const { socket, headersSent, setHeader } = response as Partial<ServerResponse>;
  if (headersSent === false) setHeader?.call(response, 'Connection', 'close');
  response.once('finish', () => socket?.destroySoon());
};

// In the compatibility API of HTTP/2 it is a property; otherwise the response may be the stream.
const http2StreamOf = (response: unknown): Http2Stream | undefined => {
  const { stream } = response as { readonly stream?: Http2Stream };
  if (stream !== undefined) return stream;
  return typeof (response as Partial<Http2Stream>).close === 'function' ? (response as Http2Stream) : undefined;
};
