import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';

/** A request of Express, Fastify or `node:http`, as far as `sse()` uses it. */
export interface SseRequest {
  readonly headers: IncomingHttpHeaders;
  /** Express: the response. */
  readonly res?: unknown;
  /** Fastify: the request of `node:http`. */
  readonly raw?: unknown;
}

/** Returns the id of the last message that the client received on its previous connection. */
export const lastEventIdOf = ({ headers }: SseRequest): string | undefined => {
  const id = headers['last-event-id'];
  return Array.isArray(id) ? id[0] : id;
};

/**
 * Returns the response to a request.
 *
 * Express stores it in the request. On Fastify, Node stores the response that is being sent in the socket. Over HTTP/2 neither exists: the
 * stream or the socket under the response reports backpressure as well.
 */
export const responseOf = (request: SseRequest): Writable | undefined => {
  if (isWritable(request.res)) return request.res;
  const raw = rawOf(request);
  const { socket } = raw;
  const response = socket?._httpMessage;
  if (response?.req === raw) return response;
  return [raw.stream, socket].find(isWritable);
};

/**
 * Returns whether a request is pipelined (RFC 9112, 9.3.2): sent before the previous response on its connection was complete, so that its
 * response has to wait. Also returns `true` for a request whose connection has ended.
 */
export const isPipelined = (request: SseRequest): boolean => {
  const raw = rawOf(request);
  // HTTP/2 has a stream for each response.
  if (raw.stream !== undefined) return false;
  if (isWritable(request.res)) return (request.res as Partial<ServerResponse>).socket === null;
  const sending = raw.socket?._httpMessage;
  return sending !== null && sending !== undefined && sending.req !== raw;
};

interface RawRequest {
  readonly stream?: unknown;
  readonly socket?: { readonly _httpMessage?: ServerResponse | null };
}

const rawOf = (request: SseRequest): RawRequest => request.raw ?? request;

const isWritable = (value: unknown): value is Writable =>
  typeof (value as Writable | undefined)?.write === 'function' && typeof (value as Writable).once === 'function';
