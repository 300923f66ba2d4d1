import { type MessageEvent, ServiceUnavailableException } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { catchError, defer, finalize, type Observable, tap, throwError } from 'rxjs';
import { type Relay, RelayFullError, type RelayReceiver } from '../relay/index.js';
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
  receiver: Pick<RelayReceiver, 'lastEventId' | 'select'>,
  response: Writable | undefined,
): Observable<MessageEvent> =>
  defer(() => {
    const target = new SseResponse(response);
    return relay.messages$({ ...receiver, response: target }).pipe(
      tap(({ data }) => target.handOver(data.length)),
      finalize(target.listen()),
    );
  }).pipe(catchError((error: unknown) => throwError(() => answerTo(error, response))));

/** Gives the answer to a client that there is no room for: 503 with `Retry-After`. Any other error stays what it is. */
const answerTo = (error: unknown, response: Writable | undefined): unknown => {
  if (!(error instanceof RelayFullError)) return error;
  const { headersSent, setHeader } = (response ?? {}) as Partial<ServerResponse>;
  // Nest answers only now, with what is set here: on Fastify too, which knows nothing of it.
  if (headersSent === false) setHeader?.call(response, 'Retry-After', error.retryAfterMs / 1_000);
  return new ServiceUnavailableException(error.message);
};
