import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { constants, type Http2Stream } from 'node:http2';
import type { Writable } from 'node:stream';
import type { RelayResponse } from './relay-receiver.js';

/** A response of HTTP/1.1 or HTTP/2 that a relay writes to. */
export interface StreamResponse extends RelayResponse {
  /** Whether the client has left, or other code has ended the response. */
  readonly isOver: boolean;
  write(bytes: Uint8Array): void;
}

/**
 * Wraps a response.
 *
 * The compatibility API of HTTP/2 lacks `writableNeedDrain` and `destroyed`, so this uses the result of `write`, `drain` and `close` instead.
 */
export const streamResponse = (response: ServerResponse): StreamResponse => {
  let isFull = false;
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

/** Waits until an open response closes. Destroys it if the client does not read it to the end within 1 s. */
export const waitForClose = async (response: Writable): Promise<void> => {
  try {
    // `finished` of node:stream resolves at once for a response that has ended, although the client has not read it.
    await once(response, 'close', { signal: AbortSignal.timeout(graceMs) });
  } catch {
    destroyResponse(response);
  }
};

/** Destroys a response, and discards the data that is not sent. */
export const destroyResponse = (response: Writable): void => {
  const stream = http2StreamOf(response);
  // A destroyed HTTP/2 stream still waits until its data is sent, so the server would not close. A reset discards the data.
  if (stream === undefined) response.destroy();
  else stream.close(constants.NGHTTP2_CANCEL);
};

/** Closes the connection after a response. The next request of a page can then reach a server that is not shutting down. */
export const closeConnectionAfter = (response: Writable): void => {
  const session = http2StreamOf(response)?.session;
  // Open streams continue, and the client opens new ones on another connection.
  if (session !== undefined) session.close();
  else {
    const { socket, headersSent, setHeader } = response as Partial<ServerResponse>;
    if (headersSent === false) setHeader?.call(response, 'Connection', 'close');
    response.once('finish', () => socket?.destroySoon());
  }
};

/** Returns the HTTP/2 stream of a response. In the compatibility API it is a property; otherwise the response may be the stream. */
const http2StreamOf = (response: unknown): Http2Stream | undefined => {
  const { stream } = response as { readonly stream?: Http2Stream };
  if (stream !== undefined) return stream;
  return typeof (response as Partial<Http2Stream>).close === 'function' ? (response as Http2Stream) : undefined;
};
