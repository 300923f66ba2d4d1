import { catchError, concat, concatMap, defer, from, type Observable, takeWhile, tap, throwError, timeout } from 'rxjs';
import { relayError } from '../protocol/failures/relay-error.js';
import { Attempt } from './attempt.js';
import type { Received } from '../protocol/event-line.js';
import { readMessage } from './read-message.js';
import type { RelayFeedSettings } from './relay-feed-options.js';
import { relayRequest$ } from './relay-request.js';
import type { ResumePoint } from './resume-point.js';
import { type ServerSentEvent, serverSentEvents } from './server-sent-events.js';

/**
 * Opens one connection to a relay, from the place that was reached, and streams its events.
 *
 * Completes when the relay says that its feed is complete. Errors with an {@link Ended}: what ended the connection, as this side saw it, or as
 * the relay said in `connect-again`.
 */
export const relayConnection$ = (settings: RelayFeedSettings, place: ResumePoint): Observable<Received> =>
  defer(() => {
    const { connectTimeoutMs: first, idleTimeoutMs: each, scheduler } = settings;
    const attempt = new Attempt(() => scheduler.now());
    const failed$ = (...how: Parameters<Attempt['failure']>) => throwError(() => attempt.failure(...how));
    const silent$ = () => failed$('relay-stalled');

    const handOn = (message: ServerSentEvent): Observable<Received> => {
      const { relayAt, events = [], ending } = readMessage(message, place.shiftMs);
      if (relayAt !== undefined) place.shiftMs = attempt.opened(relayAt, place.shiftMs);
      // A relay whose feed has stopped may say no more than this.
      if (ending !== undefined) throw attempt.sent(ending);
      if (attempt.openedAt === undefined) throw relayError({ code: 'invalid-relay' });
      return from(events).pipe(
        tap({ next: (event) => attempt.received(event), complete: () => place.reached(message.id) }),
      );
    };

    return concat(
      relayRequest$(settings, place.lastEventId()).pipe(
        tap(() => attempt.heard()),
        catchError((cause: unknown) => failed$('relay-lost', cause)),
        timeout({ first, each, scheduler, with: silent$ }),
        serverSentEvents(),
        timeout({ first, scheduler, with: silent$ }),
      ),
      failed$('relay-lost'),
    ).pipe(
      takeWhile(({ type }) => type !== 'complete'),
      concatMap(handOn),
      // eslint-disable-next-line rxjs-x/throw-error -- for the notifier of `retryWhen`, which makes an error of it
      catchError((cause: unknown) => throwError(() => attempt.ended(cause))),
    );
  });
