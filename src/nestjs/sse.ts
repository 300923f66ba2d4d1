import {
  BadRequestException,
  ForbiddenException,
  type MessageEvent,
  MethodNotAllowedException,
  ServiceUnavailableException,
} from '@nestjs/common';
import { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { catchError, defer, finalize, fromEvent, NEVER, type Observable, takeUntil, tap, throwError } from 'rxjs';
import { aFunction, checkRequired, oneOf, type Rule, validated } from '../protocol/validate.js';
import {
  type AllowedOrigins,
  checkCors,
  closeConnectionAfter,
  destroyResponse,
  destroyWhenAborted,
  originsRule,
  waitForClose,
} from '../relay/http.js';
import { type Relay, RelayFullError, type RelayReceiver, type RelayResponse, type RelayTopic } from '../relay/index.js';
import { connectionBusy, methodRefused, refusals, retryAfterOf } from '../relay/refusals.js';
import { isClosing, isConnectAgain } from '../relay/relay-message.js';

/** The options of `TradeFeed.sse`. */
export interface SseOptions {
  /**
   * Which clients may read. `'guard'`: a guard of the route or of the application decides. `'everybody'`: each client
   * that reaches the route may read. There is no default. This option does not check whether there is a guard.
   */
  readonly authorize: 'guard' | 'everybody';
  /**
   * The id of the user that the guard accepted, for `relay.maxClientsPerUser` and `relay.disconnect(id)`.
   *
   * @defaultValue none: the limit does not count this stream
   */
  readonly user?: string | number | undefined;
  /**
   * An operator over the events of the feed, whose output this browser receives instead of every frame. It runs once
   * for all browsers that use the same function. Create it once, as a constant: each new function is a new topic.
   *
   * @defaultValue the complete feed
   */
  readonly select?: RelayTopic | undefined;
  /**
   * Other origins whose pages may read, such as `https://app.example.com`, or `'*'` for every page. Enable CORS in Nest
   * for them too: Nest sends the headers that allow a page to read the response.
   *
   * @defaultValue none: only the origin of the server
   */
  readonly allowOrigins?: AllowedOrigins | undefined;
}

/** Returns the stream for one browser. Calls `onResponse` with its response when the stream begins. */
export const sseMessages = (
  relay: Relay,
  request: SseRequest,
  options: SseOptions,
  onResponse: (response: Writable) => void,
): Observable<MessageEvent> => {
  checkRequired(Object(options) as object, { authorize: rules.authorize });
  const { allowOrigins = [], user, select } = validated(options, rules);
  const response = responseOf(request);
  return defer(() => {
    checkRequest(request, allowOrigins, response);
    if (response) onResponse(response);
    const [lastEventId] = [request.headers['last-event-id']].flat();
    return sseMessages$(relay, { lastEventId, user: user === undefined ? user : String(user), select }, response);
  });
};

const checkRequest = (request: SseRequest, allowOrigins: AllowedOrigins, response: Writable | undefined): void => {
  const { refusal } = checkCors(request, allowOrigins);
  if (refusal !== undefined) throw new ForbiddenException(refusal);
  // Express and Fastify route `HEAD` as well.
  if ((request.method ?? 'GET') !== 'GET') {
    setHeader(response, 'Allow', 'GET');
    throw new MethodNotAllowedException(methodRefused);
  }
  // Otherwise one connection could use up `relay.maxClients`.
  if (isPipelined(request)) throw new BadRequestException(connectionBusy);
};

const readers = oneOf('guard', 'everybody');

const rules: Readonly<Record<keyof SseOptions, Rule>> = {
  authorize: { ...readers, allowed: `${readers.allowed}: it decides who may read` },
  user: {
    allowed: "a string that isn't empty, or a finite number",
    isSecret: true,
    is: (v) => (typeof v === 'string' && v !== '') || Number.isFinite(v),
  },
  select: { allowed: 'an operator', is: aFunction.is },
  allowOrigins: originsRule,
};

/** A request of Express, Fastify or `node:http`, as far as `sse()` uses it. */
export interface SseRequest {
  readonly headers: IncomingHttpHeaders;
  /** The method: only `GET` receives the feed. */
  readonly method?: string | undefined;
  /** Express: the response. */
  readonly res?: unknown;
  /** Fastify: the request of `node:http`. */
  readonly raw?: unknown;
}

/**
 * Express stores the response in the request. On Fastify, Node stores the response that is being sent in the socket.
 * Over HTTP/2 neither exists: the stream or the socket under the response reports backpressure as well.
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
 * Whether a request was sent before the previous response on its connection was complete (RFC 9112, 9.3.2), so that its
 * response has to wait; or its connection has ended.
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

/**
 * Emits the messages of a relay for one client. Nest writes them.
 *
 * Nest (11.2 and 12.5) subscribes, and sends the headers in the next turn or before the first message. Its exception
 * filters answer an error that is emitted before that. It unsubscribes when the request's socket closes, and ends the
 * response on completion. It adds ids to messages without one; all messages of a relay have an id.
 */
export const sseMessages$ = (
  relay: Relay,
  receiver: Pick<RelayReceiver, 'lastEventId' | 'select' | 'user'>,
  response: Writable | undefined,
): Observable<MessageEvent> =>
  defer(() => {
    const target = new SseResponse(response);
    // Nest waits for the end of the socket, which all streams of an HTTP/2 session share.
    const stream = response && destroyWhenAborted(response);
    return relay.messages$({ ...receiver, response: target }).pipe(
      tap({
        next: (message) => {
          // Nest reads the status before it writes the first message.
          if (isConnectAgain(message)) setHeader(response, 'Retry-After', retryAfterOf(message), 503);
          target.handOver(message.data.length);
          if (response && isClosing(message)) closeConnectionAfter(response);
        },
        complete: () => response && void waitForClose(response),
      }),
      takeUntil(stream ? fromEvent(stream, 'close') : NEVER),
      finalize(target.listen()),
    );
  }).pipe(catchError((error: unknown) => throwError(() => exceptionFor(error, response))));

/** 503 with `Retry-After` when the relay refuses the client. The text of any other error is only in the log. */
const exceptionFor = (error: unknown, response: Writable | undefined): unknown => {
  if (!(error instanceof RelayFullError)) return failedBy(error);
  setHeader(response, 'Retry-After', retryAfterOf(error));
  if (response && error.reason === 'closed') closeConnectionAfter(response);
  const { message, code } = refusals[error.reason];
  return new ServiceUnavailableException({ statusCode: 503, error: 'Service Unavailable', code, message });
};

// Nest logs the stack, but it may send the message to the client when the headers are sent.
const failedBy = (cause: unknown): Error =>
  Object.assign(new Error("The feed failed. See the server's log.", { cause }), {
    stack: cause instanceof Error ? cause.stack : String(cause),
  });

/** How many characters Nest may receive before the state of the response is read again. */
const maxPerTurn = 64 * 1024;

/**
 * Tells a relay the backpressure of a response that Nest writes to. Nest accepts every message
 * into a queue, writes it some ticks later, and drops the client at 4 Mi characters. So this is full when the response
 * is, and when Nest has received `maxPerTurn` characters in this turn of the event loop.
 */
class SseResponse extends EventEmitter implements RelayResponse {
  readonly #response: Writable | undefined;
  #acceptedChars = 0;

  constructor(response: Writable | undefined) {
    super();
    this.#response = response;
  }

  get writableNeedDrain(): boolean {
    return this.#acceptedChars >= maxPerTurn || this.#response?.writableNeedDrain === true;
  }

  handOver(length: number): void {
    // In the next turn Nest has written them to the response, unless the response is full.
    if (this.#acceptedChars === 0) setImmediate(() => this.#nextTurn());
    this.#acceptedChars += length;
  }

  /** Forwards `drain` of the response. Returns a function that removes the listener. */
  listen(): () => void {
    const onDrain = () => this.emit('drain');
    this.#response?.on('drain', onDrain);
    return () => this.#response?.off('drain', onDrain);
  }

  destroy(): void {
    if (this.#response) destroyResponse(this.#response);
  }

  #nextTurn(): void {
    const wasFull = this.#acceptedChars >= maxPerTurn;
    this.#acceptedChars = 0;
    if (wasFull && !this.writableNeedDrain) this.emit('drain');
  }
}

// Has no effect after the headers are sent. On Fastify, Nest answers with the headers of the response of Node.
const setHeader = (response: Writable | undefined, name: string, value: string, status?: number): void => {
  const http = (response ?? {}) as Partial<ServerResponse>;
  if (http.headersSent !== false) return;
  if (status !== undefined) http.statusCode = status;
  http.setHeader?.(name, value);
};
