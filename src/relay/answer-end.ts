import type { ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** How long a client may take to read the end of its answer, in ms. */
const graceMs = 1_000;

/** Waits until an answer is sent to its end, and cuts one that is not read. */
export const answerEnd = async (response: Writable): Promise<void> => {
  try {
    await finished(response, { readable: false, signal: AbortSignal.timeout(graceMs) });
  } catch {
    response.destroy();
  }
};

/**
 * Ends the connection that an answer came over, as soon as that is sent: over a kept one the next request of a page would reach this server
 * again, although it shuts down.
 */
export const endConnectionAfter = (response: Writable): void => {
  const session = http2SessionOf(response);
  // Streams that are open go on; the client opens new ones on another connection.
  if (session !== undefined) session.close();
  else {
    const { socket } = response as Partial<ServerResponse>;
    response.once('finish', () => socket?.destroySoon());
  }
};

/** Finds the session, in a stream of HTTP/2 or in the response that Node puts around it. */
const http2SessionOf = (response: unknown): Http2Session | undefined => {
  const { stream, session } = response as {
    readonly stream?: { readonly session?: Http2Session };
    session?: Http2Session;
  };
  return stream?.session ?? session;
};
