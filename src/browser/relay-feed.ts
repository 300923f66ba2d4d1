import { defer, merge, type Observable, retryWhen, Subject, tap } from 'rxjs';
import type { Disconnected, LifecycleEvent, Reconnecting, RelayedEvent, Stopped } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failure.js';
import { backoff } from '../reconnect/reconnect.js';
import type { RelayedValue } from '../protocol/relayed-value.js';
import type { Received } from './read-event.js';
import { relayConnection$ } from './relay-connection.js';
import { type RelayFeedOptions, resolveRelayFeed } from './relay-feed-options.js';
import { resumePoint } from './resume-point.js';

/**
 * Streams a feed that a relay hands on, in a browser or in Node: the frames and what happens around them, in order, as `tradeFeedEvents$`
 * does on the server.
 *
 * Cold: each subscription is a client of the relay; the relay has one connection to the service for all of them. A frame's `data` is a
 * `Uint8Array`. First come the events that say how it stands with the feed. When the connection to the relay ends it is made anew, with the backoff
 * of `tradeFeed$`, and goes on behind the last event that was handed on: nothing is missing, or a `gap` says what. A `gap` with the code
 * `relay-behind` and `missed` frames also stands where this client was too slow. Times are those of the relay, put right if its clock is more than a
 * second away from this machine's.
 *
 * Completes when the feed behind the relay does. Errors with a `TradeFeedError`: the stop of the feed itself (`connection-replaced`,
 * `invalid-api-key`, …), `relay-refused` (401, 403), `invalid-relay` (no relay at that address), or `retries-exhausted`. Goes on after
 * `relay-unreachable`, `relay-full` (503, not before `Retry-After`), `relay-failed` (5xx, 408, 429), `relay-lost`, `relay-stalled` and
 * `invalid-relay-data`.
 *
 * @typeParam T - what the values are, where the relay runs an operator on the server (`select`): each comes as a {@link RelayedValue}. It is not
 *   checked here. Without it the type has no values.
 * @param url - where the relay answers, relative to the page
 * @param options - see {@link RelayFeedOptions}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself, before any I/O
 * @example
 * ```ts
 * import { relayFeed$ } from 'rx-trade-feed/browser';
 * import { connectionStatus, frames } from 'rx-trade-feed/operators';
 * import { share } from 'rxjs';
 *
 * const feed$ = relayFeed$('https://app.example.com/feed').pipe(share());
 * feed$.pipe(frames()).subscribe((frame) => console.log(frame.text()));
 * feed$.pipe(connectionStatus()).subscribe(({ state }) => console.log(state));
 * ```
 */
export const relayFeed$ = <T = never>(
  url: string | URL,
  options?: RelayFeedOptions,
): Observable<RelayedEvent | ValueOf<T>> => {
  const settings = resolveRelayFeed(url, options);
  return defer(() => {
    const lifecycle = new Subject<LifecycleEvent>();
    const emit = (event: Untimed) => lifecycle.next({ at: Date.now(), ...event });
    const place = resumePoint(settings);
    let last: Received['type'];
    return merge(
      lifecycle,
      relayConnection$(settings, place).pipe(
        retryWhen(
          backoff(settings.backoff, ({ failure, delayMs, attempt }) => {
            emit({ type: 'disconnected', failure });
            emit({ type: 'reconnecting', delayMs, attempt, verdict: failure.verdict });
          }),
        ),
        tap({
          next: ({ type }) => (last = type),
          // The relay has sent it already, unless this client joined after the stop.
          error: (failure: unknown) =>
            last !== 'stopped' && failure instanceof TradeFeedError && emit({ type: 'stopped', failure }),
          complete: () => lifecycle.complete(),
        }),
      ),
    ) as Observable<RelayedEvent | ValueOf<T>>;
  });
};

/** Without a `T` there are no values, and a `switch` over the events needs no case for them. */
type ValueOf<T> = [T] extends [never] ? never : RelayedValue<T>;

type Untimed = { readonly [E in Disconnected | Reconnecting | Stopped as E['type']]: Omit<E, 'at'> }[
  'disconnected' | 'reconnecting' | 'stopped'];
