import { type MessageEvent, ServiceUnavailableException } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { catchError, defer, finalize, type Observable, tap, throwError } from 'rxjs';
import { type Relay, RelayFullError, type RelayReceiver } from '../relay/index.js';
import { closeConnectionAfter, waitForClose } from '../relay/http-response.js';
import { noRoom } from '../relay/relay-full-error.js';
import { isClosing, isConnectAgain } from '../relay/relay-message.js';
import { lateRetryAfterMs } from '../relay/relay-run.js';
import { SseResponse } from './sse-response.js';

/**
 * Streams the messages of a relay for one client, for Nest to write.
 *
 * What Nest (11.2 and 12.5) does with it: it subscribes, and sends the headers in the next turn or before the first message; an error
 * before that gets the answer of its exception filters. It unsubscribes when the request's socket closes, and ends the answer on
 * completion. It gives ids of its own to messages without one: those of a relay all have theirs.
 */
export const sseMessages$ = (
  relay: Relay,
  receiver: Pick<RelayReceiver, 'lastEventId' | 'select' | 'user'>,
  response: Writable | undefined,
): Observable<MessageEvent> =>
  defer(() => {
    const target = new SseResponse(response);
    return relay.messages$({ ...receiver, response: target }).pipe(
      tap({
        next: (message) => {
          // Nest reads the status before it writes the first message.
          if (response && isConnectAgain(message)) refuse(response, lateRetryAfterMs);
          target.handOver(message.data.length);
          if (response && isClosing(message)) closeConnectionAfter(response);
        },
        complete: () => response && void waitForClose(response),
      }),
      finalize(target.listen()),
    );
  }).pipe(catchError((error: unknown) => throwError(() => answerTo(error, response))));

// Only before the stream has begun.
const refuse = (
  response: Writable & Partial<Pick<ServerResponse, 'headersSent' | 'statusCode' | 'setHeader'>>,
  retryAfterMs: number,
): void => {
  if (response.headersSent !== false) return;
  response.statusCode = 503;
  response.setHeader?.('Retry-After', retryAfterMs / 1_000);
};

/** Gives the answer to a client that there is no room for: 503 with `Retry-After`. The text of any other error stays in the log. */
const answerTo = (error: unknown, response: Writable | undefined): unknown => {
  if (!(error instanceof RelayFullError)) return failedBy(error);
  const { headersSent, setHeader } = (response ?? {}) as Partial<ServerResponse>;
  // Nest answers only now, with what is set here: on Fastify too, which knows nothing of it.
  if (headersSent === false) setHeader?.call(response, 'Retry-After', error.retryAfterMs / 1_000);
  if (response && error.reason === 'closed') closeConnectionAfter(response);
  return new ServiceUnavailableException(noRoom);
};

// Nest logs the stack, but it may write the message into a stream that has begun.
const failedBy = (cause: unknown): Error =>
  Object.assign(new Error('The feed failed. See the log of the server.', { cause }), {
    stack: cause instanceof Error ? cause.stack : String(cause),
  });
