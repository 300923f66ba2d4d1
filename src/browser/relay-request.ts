import { catchError, defer, type Observable, type ObservableInput, switchMap, timeout } from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import { relayError } from '../protocol/failures/relay-error.js';
import { pageGlobals } from './page-globals.js';
import { type RelayFeedSettings, requestHeaders } from './relay-feed-options.js';

/**
 * Requests the stream of a relay, and emits its bytes.
 *
 * Completes when the relay ends the stream. Errors with a `TradeFeedError` of the stage `handshake` when the answer is not a stream and when the
 * `headers` function fails, and with the error of `fetch` when the connection breaks. Unsubscribing ends the request.
 */
export const relayRequest$ = (settings: RelayFeedSettings, lastEventId: string | undefined): Observable<Uint8Array> =>
  appHeaders$(settings).pipe(
    switchMap((headers) => {
      const { url, credentials } = settings;
      headers.set('accept', 'text/event-stream');
      if (lastEventId !== undefined) headers.set('last-event-id', lastEventId);
      // A service worker of Angular would wait for the end of the stream. Another origin would have to allow this header.
      if (new URL(url).origin === pageGlobals.location?.origin) headers.set('ngsw-bypass', 'true');
      return fromFetch(url, { headers, credentials, ...uncached, selector: bytesOf });
    }),
  );

const appHeaders$ = ({ headers, connectTimeoutMs, scheduler }: RelayFeedSettings): Observable<Headers> =>
  defer(async () => requestHeaders(typeof headers === 'function' ? await headers() : headers)).pipe(
    timeout({ first: connectTimeoutMs, scheduler }),
    catchError((cause: unknown) => {
      throw relayError({ code: 'relay-headers-failed', cause });
    }),
  );

// The types of Node lack this option.
const uncached = { cache: 'no-store' };

const bytesOf = ({ ok, status, headers, body }: Response): ObservableInput<Uint8Array> => {
  // A 503 may have one message: why the relay has no feed.
  if ((ok || status === 503) && body !== null && headers.get('content-type')?.startsWith('text/event-stream'))
    return body;
  // An unread body would block the connection.
  body?.cancel().catch(() => undefined);
  throw relayError({ status, retryAfterMs: waitMs(headers) });
};

// Relays send seconds. Any other value is ignored.
const waitMs = (headers: Headers): number | undefined => Number(headers.get('retry-after')) * 1_000 || undefined;
