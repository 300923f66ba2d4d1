import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { constants, type Http2Stream } from 'node:http2';
import type { Writable } from 'node:stream';

/** How long a client may take to read the end of its answer, in ms. */
const graceMs = 1_000;

/** Waits until an answer, which is not closed yet, is sent to its end, and cuts one that is not read. */
export const answerEnd = async (response: Writable): Promise<void> => {
  try {
    // `finished` of node:stream is over at once for a response that was ended before.
    await once(response, 'close', { signal: AbortSignal.timeout(graceMs) });
  } catch {
    cutAnswer(response);
  }
};

/** Cuts an answer that is not read, whatever is still to be sent. */
export const cutAnswer = (response: Writable): void => {
  const stream = http2StreamOf(response);
  // Over HTTP/2, a stream that is destroyed waits until its data is sent: the server would not close. A reset drops them.
  if (stream === undefined) response.destroy();
  else stream.close(constants.NGHTTP2_CANCEL);
};

/**
 * Ends the connection that an answer came over, as soon as that is sent: over a kept one the next request of a page would reach this server
 * again, although it shuts down.
 */
export const endConnectionAfter = (response: Writable): void => {
  const session = http2StreamOf(response)?.session;
  // Streams that are open go on; the client opens new ones on another connection.
  if (session !== undefined) session.close();
  else {
    const { socket, headersSent, setHeader } = response as Partial<ServerResponse>;
    if (headersSent === false) setHeader?.call(response, 'Connection', 'close');
    response.once('finish', () => socket?.destroySoon());
  }
};

/** Finds the stream of HTTP/2: the response that Node puts around it has it, and a response may be the stream. */
const http2StreamOf = (response: unknown): Http2Stream | undefined => {
  const { stream } = response as { readonly stream?: Http2Stream };
  if (stream !== undefined) return stream;
  return typeof (response as Partial<Http2Stream>).close === 'function' ? (response as Http2Stream) : undefined;
};
