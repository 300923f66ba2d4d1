import { catchError, defer, from, noop, type Observable, switchMap, throwError, timeout } from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import { relayError } from '../protocol/failures/relay-error.js';
import { page } from './page.js';
import { type RelayFeedSettings, requestHeaders } from './relay-feed-options.js';

/**
 * Asks a relay for its stream, and gives the bytes of it as they come.
 *
 * Completes when the relay ends it. Errors with a `TradeFeedError` of the stage `handshake` for an answer that is none of a relay and for
 * headers that cannot be had, and with what `fetch` throws when the connection breaks. Unsubscribing ends the request.
 */
export const relayRequest$ = (settings: RelayFeedSettings, lastEventId: string | undefined): Observable<Uint8Array> =>
  ownHeaders$(settings).pipe(
    switchMap((headers) => {
      const { url, credentials } = settings;
      headers.set('accept', 'text/event-stream');
      if (lastEventId !== undefined) headers.set('last-event-id', lastEventId);
      // A service worker of Angular would read the stream to its end. Another origin would have to permit this header.
      if (new URL(url).origin === page.location?.origin) headers.set('ngsw-bypass', 'true');
      return fromFetch(url, { headers, credentials, ...uncached, selector: bytesOf });
    }),
  );

const ownHeaders$ = ({ headers, connectTimeoutMs, scheduler }: RelayFeedSettings): Observable<Headers> =>
  defer(async () => requestHeaders(typeof headers === 'function' ? await headers() : headers)).pipe(
    timeout({ first: connectTimeoutMs, scheduler }),
    catchError((cause: unknown) => throwError(() => relayError({ code: 'relay-headers-failed', cause }))),
  );

// The types of Node do not know it.
const uncached = { cache: 'no-store' };

const bytesOf = ({ ok, status, headers, body }: Response): Observable<Uint8Array> => {
  // 503: the relay says why it has no feed, in one message.
  if ((ok || status === 503) && body !== null && headers.get('content-type')?.startsWith('text/event-stream'))
    return from(body) as Observable<Uint8Array>;
  // Nobody reads it, and it would keep the connection.
  body?.cancel().catch(noop);
  return throwError(() => relayError({ status, retryAfterMs: waitMs(headers) }));
};

// In seconds, as a relay sends it; anything else is no wait.
const waitMs = (headers: Headers): number | undefined => Number(headers.get('retry-after')) * 1_000 || undefined;
