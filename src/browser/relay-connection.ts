import { catchError, concat, concatMap, defer, from, type Observable, takeWhile, tap, throwError, timeout } from 'rxjs';
import type { Received } from '../protocol/event-line.js';
import { relayError } from '../protocol/failures/relay-error.js';
import { createConnectionFacts, type DetectedCode } from './connection-facts.js';
import { readMessage } from './read-message.js';
import type { RelayFeedSettings } from './relay-feed-options.js';
import { relayRequest$ } from './relay-request.js';
import type { ResumePoint } from './resume-point.js';
import { createServerSentEventReader, type ServerSentEvent } from './server-sent-events.js';

/**
 * Opens one connection to a relay, resumes at a point, and emits the events.
 *
 * Completes at the message `complete`. Errors with a {@link ConnectionEnd}: the failure that this client has detected, or that the relay sent in
 * `connect-again`.
 */
export const relayConnection$ = (settings: RelayFeedSettings, point: ResumePoint): Observable<Received> =>
  defer(() => {
    const { connectTimeoutMs: first, idleTimeoutMs: each, scheduler } = settings;
    const facts = createConnectionFacts(() => scheduler.now());
    const failed$ = (code: DetectedCode, cause?: unknown) => throwError(() => facts.failure(code, cause));
    const silent$ = () => failed$('relay-stalled');

    const eventsOf = (message: ServerSentEvent): Observable<Received> => {
      const { relayAt, events = [], ending } = readMessage(message, point.shiftMs);
      if (relayAt !== undefined) point.shiftMs = facts.opened(relayAt, point.shiftMs);
      // A relay whose feed has stopped may send only this message, without `hello`.
      if (ending !== undefined) throw facts.relayFailure(ending);
      if (!facts.isOpen()) throw relayError({ code: 'invalid-relay' });
      return from(events).pipe(
        tap({ next: (event) => facts.eventReceived(event), complete: () => point.reached(message.id) }),
      );
    };

    return concat(
      relayRequest$(settings, point.lastEventId()).pipe(
        tap(() => facts.bytesReceived()),
        catchError((cause: unknown) => failed$('relay-lost', cause)),
        timeout({ first, each, scheduler, with: silent$ }),
        concatMap(createServerSentEventReader()),
        timeout({ first, scheduler, with: silent$ }),
      ),
      failed$('relay-lost'),
    ).pipe(
      takeWhile(({ event }) => event !== 'complete'),
      concatMap(eventsOf),
      // eslint-disable-next-line rxjs-x/throw-error -- the notifier of `retryWhen` turns it into an error
      catchError((cause: unknown) => throwError(() => facts.end(cause))),
    );
  });
