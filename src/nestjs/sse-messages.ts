import { type MessageEvent, ServiceUnavailableException } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { catchError, defer, finalize, type Observable, tap, throwError } from 'rxjs';
import { type Relay, RelayFullError, type RelayReceiver } from '../relay/index.js';
import { closeConnectionAfter, waitForClose } from '../relay/http-response.js';
import { noRoom } from '../relay/refusal-texts.js';
import { isClosing, isConnectAgain } from '../relay/relay-message.js';
import { retryAfterOf } from '../relay/retry-after.js';
import { SseResponse } from './sse-response.js';

/**
 * Emits the messages of a relay for one client. Nest writes them.
 *
 * Nest (11.2 and 12.5) subscribes, and sends the headers in the next turn or before the first message. Its exception filters answer an
 * error that is emitted before that. It unsubscribes when the request's socket closes, and ends the response on completion. It adds ids to
 * messages without one; all messages of a relay have an id.
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
          if (response && isConnectAgain(message)) refuse(response, retryAfterOf(message));
          target.handOver(message.data.length);
          if (response && isClosing(message)) closeConnectionAfter(response);
        },
        complete: () => response && void waitForClose(response),
      }),
      finalize(target.listen()),
    );
  }).pipe(catchError((error: unknown) => throwError(() => exceptionFor(error, response))));

// Has no effect after the headers are sent.
const refuse = (
  response: Writable & Partial<Pick<ServerResponse, 'headersSent' | 'statusCode' | 'setHeader'>>,
  retryAfter: string,
): void => {
  if (response.headersSent !== false) return;
  response.statusCode = 503;
  response.setHeader?.('Retry-After', retryAfter);
};

/** Returns the error for Nest: 503 with `Retry-After` when the relay refuses the client. The text of any other error is only in the log. */
const exceptionFor = (error: unknown, response: Writable | undefined): unknown => {
  if (!(error instanceof RelayFullError)) return failedBy(error);
  const { headersSent, setHeader } = (response ?? {}) as Partial<ServerResponse>;
  // Nest sends the answer, with this header, later. This also works on Fastify, because the header is set on the response of Node.
  if (headersSent === false) setHeader?.call(response, 'Retry-After', retryAfterOf(error));
  if (response && error.reason === 'closed') closeConnectionAfter(response);
  return new ServiceUnavailableException(noRoom);
};

// Nest logs the stack, but it may send the message to the client when the headers are sent.
const failedBy = (cause: unknown): Error =>
  Object.assign(new Error('The feed failed. See the log of the server.', { cause }), {
    stack: cause instanceof Error ? cause.stack : String(cause),
  });
