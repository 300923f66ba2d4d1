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
import {
  catchError,
  defer,
  EMPTY,
  finalize,
  fromEvent,
  NEVER,
  type Observable,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { isError } from '../protocol/type-guards.js';
import { aFunction, checkRequired, oneOf, type Rule, validated } from '../protocol/validate.js';
import {
  type AllowedOrigins,
  checkCors,
  closeConnectionAfter,
  destroyResponse,
  destroyWhenAborted,
  isOver,
  originsRule,
  waitForClose,
} from '../relay/http.js';
import { type Relay, RelayFullError, type RelayReceiver, type RelayResponse, type RelayTopic } from '../relay/index.js';
import { connectionBusy, methodRefused, refusals, retryAfterOf } from '../relay/refusals.js';
import { isClosing, isConnectAgain } from '../relay/relay-message.js';

/** The options of `TradeFeed.sse`. */
export interface SseOptions {
  /**
   * Which clients may read. `'guard'`: a guard of the route or of the application decides. `'everybody'`: any client
   * that reaches the route may read. There's no default, and this option doesn't check whether there's a guard.
   */
  readonly authorize: 'guard' | 'everybody';
  /**
   * The id of the user that the guard accepted, for `relay.maxClientsPerUser` and `relay.disconnect(id)`.
   *
   * @defaultValue none: the limit doesn't count this stream
   */
  readonly user?: string | number | undefined;
  /**
   * An operator over the feed's events. This browser receives its output instead of every frame. It runs once for all
   * browsers that use the same function, so create it once, as a constant: each new function is a new topic.
   *
   * @defaultValue the complete feed
   */
  readonly select?: RelayTopic | undefined;
  /**
   * Other origins whose pages may read, such as `https://app.example.com`, or `'*'` for every page. Enable CORS for
   * them in Nest as well, because Nest sends the headers that permit a page to read the response.
   *
   * @defaultValue none: only the server's own origin
   */
  readonly allowOrigins?: AllowedOrigins | undefined;
}

/** Creates the stream for one browser. Calls `onResponse` with its response when the stream starts. */
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
    // The client has left while a guard, an interceptor or the handler was waiting.
    if (response && isOver(response)) return EMPTY;
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
  // One connection could otherwise use up `relay.maxClients`.
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

/** What `sse()` needs of a request of Express, Fastify or `node:http`. */
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
 * Finds the response. Express stores it in the request; under Fastify, Node stores the one being sent in the socket.
 * Over HTTP/2 neither exists, but the stream or the socket underneath reports backpressure just as well.
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
 * Returns whether a response can't start now: because its request was pipelined after one whose response isn't
 * complete (RFC 9112, 9.3.2), or because the connection has ended.
 */
export const isPipelined = (request: SseRequest): boolean => {
  const raw = rawOf(request);
  // HTTP/2 gives each response a separate stream.
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
 * Emits a relay's messages for one client. Nest writes them.
 *
 * Nest (11.2 and 12.5) subscribes, and sends the headers in the next turn of the event loop or before the first
 * message. Until then, its exception filters answer an error. It unsubscribes when the request's socket closes, and
 * ends the response on completion. It adds ids to messages without one, but all messages of a relay have an id.
 */
export const sseMessages$ = (
  relay: Relay,
  receiver: Pick<RelayReceiver, 'lastEventId' | 'select' | 'user'>,
  response: Writable | undefined,
): Observable<MessageEvent> =>
  defer(() => {
    const target = new SseResponse(response);
    // Nest unsubscribes when the socket ends, but all streams of an HTTP/2 session share it, and an interceptor may stay
    // subscribed.
    const closing = response && (destroyWhenAborted(response) ?? response);
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
      takeUntil(closing ? fromEvent(closing, 'close') : NEVER),
      finalize(target.listen()),
    );
  }).pipe(catchError((error: unknown) => throwError(() => exceptionFor(error, response))));

/** Answers 503 with `Retry-After` if the relay refuses the client. The text of any other error stays in the log. */
const exceptionFor = (error: unknown, response: Writable | undefined): unknown => {
  if (!(error instanceof RelayFullError)) return failedBy(error);
  setHeader(response, 'Retry-After', retryAfterOf(error));
  if (response && error.reason === 'closed') closeConnectionAfter(response);
  const { message, code } = refusals[error.reason];
  return new ServiceUnavailableException({ statusCode: 503, error: 'Service Unavailable', code, message });
};

// Nest logs the stack, but may send the message to the client once the headers are sent.
const failedBy = (cause: unknown): Error =>
  Object.assign(new Error("The feed failed. See the server's log.", { cause }), {
    stack: isError(cause) ? cause.stack : String(cause),
  });

/** How many characters Nest may receive before the response's backpressure is checked again. */
const maxPerTurn = 64 * 1024;

/**
 * Reports the backpressure of a response that Nest writes to. Nest queues every message, writes it some ticks later,
 * and drops the client at 4 Mi characters. So this counts as full when the response is, or when Nest has received
 * `maxPerTurn` characters in this turn of the event loop.
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
    // By the next turn, Nest has written them to the response unless that's full.
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

// Has no effect once the headers are sent. Under Fastify, Nest sends the headers that are set on Node's response.
const setHeader = (response: Writable | undefined, name: string, value: string, status?: number): void => {
  const http = (response ?? {}) as Partial<ServerResponse>;
  if (http.headersSent !== false) return;
  if (status !== undefined) http.statusCode = status;
  http.setHeader?.(name, value);
};
