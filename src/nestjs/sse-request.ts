import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';

/** What `sse()` has to know of a request: one of Express, one of Fastify, or one of `node:http`. */
export interface SseRequest {
  readonly headers: IncomingHttpHeaders;
  /** Express: the response. */
  readonly res?: unknown;
  /** Fastify: the request of `node:http`. */
  readonly raw?: unknown;
}

/** Reads where a client was when its last connection ended. */
export const lastEventIdOf = ({ headers }: SseRequest): string | undefined => {
  const id = headers['last-event-id'];
  return Array.isArray(id) ? id[0] : id;
};

/**
 * Finds the response to a request.
 *
 * Express keeps it in the request. Fastify does not, but Node keeps it at the socket while it is the one that is being sent. Where
 * neither is so (HTTP/2), what the bytes go through next says as well when to pause.
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
 * Returns whether a request was sent before the answer to the one before it on the same connection was complete (HTTP/1.1, RFC 9112, 9.3.2):
 * its own answer has to wait. Also for one whose connection has ended.
 */
export const isPipelined = (request: SseRequest): boolean => {
  const raw = rawOf(request);
  // HTTP/2 has a stream for each answer.
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
