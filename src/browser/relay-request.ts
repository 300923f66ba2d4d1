import { defer, from, noop, type Observable, switchMap, throwError } from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import { relayError } from '../protocol/relay-failure.js';
import type { RelayFeedSettings } from './relay-feed-options.js';

/**
 * Asks a relay for its stream, and gives the bytes of it as they come.
 *
 * Completes when the relay ends it. Errors with a `TradeFeedError` of the stage `handshake` for an answer that is none of a relay, and with
 * what `fetch` throws when the connection breaks. Unsubscribing ends the request.
 */
export const relayRequest$ = (
  { url, headers, credentials }: RelayFeedSettings,
  lastEventId: string | undefined,
): Observable<Uint8Array> =>
  defer(async () => (typeof headers === 'function' ? await headers() : headers)).pipe(
    switchMap((own) =>
      fromFetch(url, {
        headers: {
          ...own,
          accept: 'text/event-stream',
          ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
        },
        credentials,
        ...uncached,
        selector: bytesOf,
      }),
    ),
  );

// The types of Node do not know it.
const uncached = { cache: 'no-store' };

const bytesOf = ({ ok, status, headers, body }: Response): Observable<Uint8Array> => {
  if (ok && body !== null && headers.get('content-type')?.startsWith('text/event-stream'))
    return from(body) as Observable<Uint8Array>;
  // Nobody reads it, and it would keep the connection.
  body?.cancel().catch(noop);
  const facts = ok ? ({ code: 'invalid-relay' } as const) : { retryAfterMs: waitMs(headers) };
  return throwError(() => relayError({ status, ...facts }));
};

// In seconds, as a relay sends it; anything else is no wait.
const waitMs = (headers: Headers): number | undefined => Number(headers.get('retry-after')) * 1_000 || undefined;
