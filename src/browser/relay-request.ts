import { catchError, defer, type Observable, type ObservableInput, switchMap, timeout } from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import type { RelayFailureCode } from '../protocol/failures/meanings.js';
import { relayError } from './relay-error.js';
import { pageGlobals } from './page-globals.js';
import { type RelayFeedSettings, requestHeaders } from './relay-feed-options.js';

/**
 * Requests a relay's stream, and emits its bytes.
 *
 * Completes when the relay ends the stream. Errors with a `TradeFeedError` of the stage `handshake` if the answer isn't
 * a stream or the `headers` function fails, and with `fetch`'s own error if the connection breaks.
 */
export const relayRequest$ = (settings: RelayFeedSettings, lastEventId: string | undefined): Observable<Uint8Array> =>
  appHeaders$(settings).pipe(
    switchMap((headers) => {
      const { url, credentials } = settings;
      headers.set('accept', 'text/event-stream');
      if (lastEventId !== undefined) headers.set('last-event-id', lastEventId);
      // Angular's service worker would wait for the end of the stream. Other origins would have to allow this header.
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

// Node's types lack this option.
const uncached = { cache: 'no-store' };

const bytesOf = (response: Response): ObservableInput<Uint8Array> => {
  const { ok, status, headers, body } = response;
  // A 503 may carry one message: why the relay has no feed.
  const isStream = (ok || status === 503) && headers.get('content-type')?.startsWith('text/event-stream');
  return isStream && body !== null ? body : refusal(response);
};

const refusal = async (response: Response): Promise<never> => {
  const { status, headers, body } = response;
  const isShort = Number(headers.get('content-length') ?? Infinity) <= 1_000;
  const mayHaveCode = status === 503 && isShort && headers.get('content-type')?.startsWith('application/json');
  // An unread body would block the connection. If cancelling fails the connection is gone, and the refusal stands.
  if (!mayHaveCode) body?.cancel().catch(() => undefined);
  const code = mayHaveCode ? await codeIn(response) : undefined;
  // Relays send seconds; anything else is ignored.
  throw relayError({ status, code, retryAfterMs: Math.ceil(Number(headers.get('retry-after'))) * 1_000 || undefined });
};

// `relayHandler` and NestJS nest the code differently. Any other 503 is `relay-full`, even if its body breaks off or
// comes from a proxy.
const codeIn = async (response: Response): Promise<RelayFailureCode | undefined> => {
  const body: unknown = await response.json().catch(() => undefined);
  const { code, error } = Object(body) as { readonly code?: unknown; readonly error?: unknown };
  const found = code ?? (Object(error) as { readonly code?: unknown }).code;
  return found === 'relay-authorize-timeout' ? found : undefined;
};
