import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
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
 * neither is so (HTTP/2, pipelined requests), what the bytes go through next says as well when to pause.
 */
export const responseOf = (request: SseRequest): Writable | undefined => {
  if (isWritable(request.res)) return request.res;
  const raw = (request.raw ?? request) as Partial<IncomingMessage> & { readonly stream?: unknown };
  const socket = raw.socket as { readonly _httpMessage?: ServerResponse | null } | undefined;
  const response = socket?._httpMessage;
  if (response?.req === raw) return response;
  return [raw.stream, socket].find(isWritable);
};

const isWritable = (value: unknown): value is Writable =>
  typeof (value as Writable | undefined)?.write === 'function' && typeof (value as Writable).once === 'function';
