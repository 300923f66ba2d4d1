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

/** The outcome of checking a request's origin (Fetch, 3.2; Fetch Metadata, 2.4). */
export interface Cors {
  /** The text of the 403; `undefined` if the request is allowed. */
  readonly refusal?: string;
  /** Headers of every answer. A page can't even read the status if they're missing. */
  readonly headers: Readonly<Record<string, string>>;
}

const originRefused = "Pages of this origin can't receive the feed. To allow them, add the origin to `allowOrigins`.";
const siteRefused =
  'Another site made this request without CORS. Use `fetch` or `relayFeed$`, ' +
  'and add the origin to `allowOrigins`.';

/**
 * Checks where a request comes from. Allows the server's own origin, and requests that have no origin unless the
 * browser reports another site: `no-cors` sends cookies but no origin. Clients other than browsers send neither header.
 */
export const checkCors = ({ headers }: { readonly headers: IncomingHttpHeaders }, allowed: AllowedOrigins): Cors => {
  const { origin, host, 'sec-fetch-site': site, 'access-control-request-headers': requested } = headers;
  const varies = { vary: 'Origin' };
  // `none`: the user typed the address.
  const isOfOtherSite = site !== undefined && site !== 'same-origin' && site !== 'none';
  if (origin === undefined && allowed !== '*' && isOfOtherSite) return { refusal: siteRefused, headers: varies };
  // Compares hosts only: a proxy that terminates TLS changes the scheme.
  if (origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)) return { headers: varies };
  if (allowed !== '*' && !allowed.includes(origin)) return { refusal: originRefused, headers: varies };
  const withCookies = { ...varies, 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' };
  const granted = allowed === '*' ? { 'access-control-allow-origin': '*' } : withCookies;
  const methods = { 'access-control-allow-methods': 'GET', 'access-control-expose-headers': 'Retry-After' };
  if (requested === undefined) return { headers: { ...granted, ...methods } };
  const preflight = { 'access-control-allow-headers': requested, 'access-control-max-age': '600' };
  return { headers: { ...granted, ...methods, ...preflight } };
};

/** A response of HTTP/1.1 or HTTP/2 that a relay writes to. It takes a block as bytes; other messages are emitted. */
export interface StreamResponse extends RelayResponse {
  /** Whether the client has left, or other code has ended the response. */
  readonly isOver: boolean;
  write(text: string): void;
  /** @param end - what comes after the bytes for this stream only */
  readonly writeBlock: (bytes: Uint8Array, end: Uint8Array) => void;
}

/**
 * Wraps a response. HTTP/2's compatibility API lacks `writableNeedDrain` and `destroyed`, so this tracks them through
 * the result of `write`, and through `drain` and `close`.
 */
export const streamResponse = (response: ServerResponse): StreamResponse => {
  let isFull = false;
  destroyWhenAborted(response);
  // Such a response emits no more `close`.
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
    write: (text) => {
      isFull = !response.write(text);
    },
    writeBlock: (bytes, end) => {
      // A middleware with a time limit may have ended the response. Writing now would emit `error`, and nothing listens
      // for it.
      if (isGone || response.writableEnded) return;
      response.cork();
      response.write(bytes);
      isFull = !response.write(end);
      response.uncork();
    },
  };
};

/** Time a client gets to read the end of a response, in ms. */
const graceMs = 1_000;

/** Waits until the client has read the response to its end, and destroys it after `graceMs`. */
export const waitForClose = async (response: Writable): Promise<void> => {
  try {
    // `finished` of node:stream resolves as soon as the response has ended, even if the client hasn't read it.
    await once(response, 'close', { signal: AbortSignal.timeout(graceMs) });
  } catch {
    destroyResponse(response);
  }
};

/** Returns whether the client has left, or other code has ended the response. It then emits no more `close`. */
export const isOver = (response: Writable): boolean =>
  (http2StreamOf(response) ?? response).destroyed || response.writableEnded;

/** Destroys a response, and discards data that wasn't sent. */
export const destroyResponse = (response: Writable): void => {
  const stream = http2StreamOf(response);
  // A destroyed HTTP/2 stream waits for its data to be sent, so the server wouldn't close. A reset doesn't wait.
  if (stream === undefined) response.destroy();
  else stream.close(constants.NGHTTP2_CANCEL);
};

/**
 * Destroys a response's HTTP/2 stream as soon as the client resets it with NO_ERROR, and returns the stream;
 * `undefined` over HTTP/1.1. Node destroys streams on any other reset, but after this one it waits for the client to
 * read the rest, which never happens.
 */
export const destroyWhenAborted = (response: Writable): Http2Stream | undefined => {
  const stream = http2StreamOf(response);
  const destroy = () => {
    if (stream?.aborted === true && stream.rstCode === constants.NGHTTP2_NO_ERROR) stream.destroy();
  };
  destroy();
  return stream?.once('aborted', destroy);
};

/** Closes the connection after a response, so that the next request can reach a server that isn't shutting down. */
export const closeConnectionAfter = (response: Writable): void => {
  const session = http2StreamOf(response)?.session;
  // Open streams continue; the client opens new ones on another connection.
  if (session !== undefined) return session.close();
  const { socket, headersSent, setHeader } = response as Partial<ServerResponse>;
  if (headersSent === false) setHeader?.call(response, 'Connection', 'close');
  response.once('finish', () => socket?.destroySoon());
};

// HTTP/2's compatibility API has it as a property; otherwise the response may be the stream itself.
const http2StreamOf = (response: unknown): Http2Stream | undefined => {
  const { stream } = response as { readonly stream?: Http2Stream };
  if (stream !== undefined) return stream;
  return typeof (response as Partial<Http2Stream>).close === 'function' ? (response as Http2Stream) : undefined;
};
