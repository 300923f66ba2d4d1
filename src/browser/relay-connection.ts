import type { EventSourceMessage } from 'eventsource-parser';
import { catchError, concat, concatMap, defer, from, type Observable, takeWhile, tap, throwError, timeout } from 'rxjs';
import type { Received } from '../protocol/event-line.js';
import { copyFailure, readFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { relayError } from './relay-error.js';
import type { RelayFeedSettings } from './relay-feed-options.js';
import { relayRequest$ } from './relay-request.js';
import { createServerSentEventReader, eventsOf, readHello } from './relay-stream.js';
import type { ResumePoint, StreamClock } from './resume-point.js';

/**
 * Opens one connection to a relay, resumes at a point, and emits the events.
 *
 * Completes at the message `complete`. Errors with a {@link ConnectionEnd}: the failure that this client detected, or
 * that the relay sent in `connect-again`.
 */
export const relayConnection$ = (settings: RelayFeedSettings, point: ResumePoint): Observable<Received> =>
  defer(() => {
    const { connectTimeoutMs: first, idleTimeoutMs: each, scheduler } = settings;
    const facts = createConnectionFacts(point.clock);
    const failed$ = (code: DetectedCode, cause?: unknown) => throwError(() => facts.failure(code, cause));
    const silent$ = () => failed$('relay-stalled');
    const received = ({ event: type, id = '', data }: EventSourceMessage): Observable<Received> => {
      if (type === 'hello') facts.opened(readHello(data));
      const { shiftMs } = point.clock;
      // A relay whose feed has stopped may send only this message, and no `hello`.
      if (type === 'connect-again') {
        const failure = readFailure(JSON.parse(data), shiftMs);
        // A page that has only this `disconnected` lacks what follows it, and asks the next feed for that gap.
        point.reached(id, []);
        throw facts.ofRelay(failure);
      }
      if (!facts.isOpen()) throw relayError({ code: 'invalid-relay' });
      const lines = type === undefined ? data.split('\n') : [];
      return from(eventsOf(lines, shiftMs, point.ownAt)).pipe(
        tap({
          next: (event) => {
            facts.event(event);
            point.passed(event);
          },
          complete: () => point.reached(id, lines),
        }),
      );
    };

    return concat(
      relayRequest$(settings, point.id).pipe(
        tap(() => facts.bytes()),
        catchError((cause: unknown) => failed$('relay-lost', cause)),
        timeout({ first, each, scheduler, with: silent$ }),
        concatMap(createServerSentEventReader()),
        timeout({ first, scheduler, with: silent$ }),
      ),
      failed$('relay-lost'),
    ).pipe(
      takeWhile(({ event }) => event !== 'complete'),
      concatMap(received),
      // eslint-disable-next-line rxjs-x/throw-error -- the notifier of `retryWhen` turns it into an error
      catchError((cause: unknown) => throwError(() => facts.end(cause))),
    );
  });

export type DetectedCode = 'relay-lost' | 'relay-stalled' | 'invalid-relay-data';

/** How one connection to a relay, or the attempt to open one, has ended. */
export interface ConnectionEnd {
  readonly failure: TradeFeedError;
  /** Whether the relay sent the failure. The verdict `stop` then means that the relay's feed has stopped. */
  readonly isOfFeed: boolean;
  /** Whether the feed was opened during this connection. */
  readonly hasOpened: boolean;
}

/** Collects facts about a new connection, for the failure that ends it. */
export const createConnectionFacts = (clock: StreamClock) => {
  const now = () => clock.now();
  const requestedAt = now();
  let lastBytesAt = requestedAt;
  let openedAt: number | undefined;
  let framesReceived = 0;
  let hasOpened = false;
  let failureOfRelay: TradeFeedError | undefined;

  const figures = (endedAt: number) => ({ uptimeMs: Math.max(0, endedAt - (openedAt ?? endedAt)), framesReceived });

  const failure = (code: DetectedCode, cause?: unknown): TradeFeedError => {
    if (cause instanceof TradeFeedError) return cause;
    if (openedAt === undefined) return relayError({ code: 'relay-unreachable', cause });
    // A stalled connection may already have ended when its last bytes arrived.
    const endedAt = code === 'relay-stalled' ? lastBytesAt : now();
    return relayError({ code, endedAt, cause, ...figures(endedAt) });
  };

  return {
    isOpen: () => openedAt !== undefined,
    bytes: () => {
      lastBytesAt = now();
    },
    /** @param relayAt - when the relay sent its first message: sets the clock */
    opened: (relayAt?: number) => {
      if (relayAt !== undefined) clock.measure(requestedAt, relayAt);
      openedAt = now();
    },
    event: ({ type }: Received) => {
      if (type === 'frame') framesReceived += 1;
      if (type === 'opened') hasOpened = true;
    },
    failure,
    /** Returns a failure from the relay with this connection's stage, uptime and frames. */
    ofRelay: (sent: TradeFeedError) => (failureOfRelay = copyFailure(sent, { stage: 'stream', ...figures(now()) })),
    end: (cause: unknown): ConnectionEnd => {
      const ended = failure('invalid-relay-data', cause);
      return { failure: ended, isOfFeed: ended === failureOfRelay, hasOpened };
    },
  };
};
