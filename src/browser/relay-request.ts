import { catchError, defer, mergeMap, type Observable, type ObservableInput, switchMap, throwError } from 'rxjs';
import { timeout } from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import type { RelayFailureCode } from '../protocol/failures/meanings.js';
import { relayError } from '../protocol/failures/trade-feed-error.js';
import { pageGlobals } from './page-globals.js';
import { type RelayFeedSettings, requestHeaders } from './relay-feed-options.js';

/**
 * Requests the stream of a relay, and emits its bytes.
 *
 * Completes when the relay ends the stream. Errors with a `TradeFeedError` of the stage `handshake` when the answer is
 * not a stream and when the `headers` function fails, and with the error of `fetch` when the connection breaks.
 */
export const relayRequest$ = (settings: RelayFeedSettings, lastEventId: string | undefined): Observable<Uint8Array> =>
  appHeaders$(settings).pipe(
    switchMap((headers) => {
      const { url, credentials } = settings;
      headers.set('accept', 'text/event-stream');
      if (lastEventId !== undefined) headers.set('last-event-id', lastEventId);
      // A service worker of Angular would wait for the end of the stream. Another origin must allow this header.
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

const bytesOf = (response: Response): ObservableInput<Uint8Array> => {
  const { ok, status, headers, body } = response;
  const type = headers.get('content-type') ?? '';
  // A 503 may have one message: why the relay has no feed.
  if ((ok || status === 503) && body !== null && type.startsWith('text/event-stream')) return body;
  const refusal = (code?: RelayFailureCode) =>
    throwError(() => relayError({ status, code, retryAfterMs: waitMs(headers) }));
  const isShort = Number(headers.get('content-length') ?? Infinity) <= maxRefusalBytes;
  if (status === 503 && isShort && type.startsWith('application/json'))
    return defer(() => codeIn(response)).pipe(mergeMap(refusal));
  // An unread body would block the connection. If the cancel fails, the connection is gone: the refusal is reported.
  body?.cancel().catch(() => undefined);
  return refusal();
};

/** The most bytes of a body that is read for its code. */
const maxRefusalBytes = 1_000;

// A `relayHandler` and NestJS nest the code differently. Any other 503 is `relay-full`, also one whose body breaks off
// or is of a proxy: the caller reports that refusal.
const codeIn = async (response: Response): Promise<RelayFailureCode | undefined> => {
  const body: unknown = await response.json().catch(() => undefined);
  const { code, error } = Object(body) as { readonly code?: unknown; readonly error?: unknown };
  const found = code ?? (Object(error) as { readonly code?: unknown }).code;
  return found === 'relay-authorize-timeout' ? found : undefined;
};

// Relays send seconds. Any other value is ignored.
const waitMs = (headers: Headers): number | undefined => Number(headers.get('retry-after')) * 1_000 || undefined;
