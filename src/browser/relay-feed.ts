import { defer, map, mergeAll, type Observable, retryWhen, scan } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import { applyClassify } from '../protocol/failures/apply-classify.js';
import { backoff } from '../reconnect/backoff.js';
import type { RelayedValue } from '../protocol/relayed-value.js';
import { reconnecting, withLifecycle } from '../reconnect/lifecycle.js';
import type { ConnectionEnd } from './connection-facts.js';
import { afterEnd, type FeedStops } from './feed-stops.js';
import { pageWakes$ } from './page-wakes.js';
import type { Received } from '../protocol/event-line.js';
import { relayConnection$ } from './relay-connection.js';
import { type RelayFeedOptions, type RelayFeedSettings, resolveRelayFeed } from './relay-feed-options.js';
import { type ResumePoint, resumePoint } from './resume-point.js';

/**
 * Receives a feed from a relay, in a browser or in Node: the frames and the lifecycle events, in order, like `tradeFeedEvents$` on the server.
 *
 * Cold: each subscription is a client of the relay; the relay has one connection to the service for all of them. The `data` of a frame is a
 * `Uint8Array`. First emits the events that describe the current state of the feed. When the connection to the relay ends, connects again with the
 * backoff of `tradeFeed$`, and resumes after the last event: a `gap` covers missing frames, if there are any. A `gap` with the code `relay-behind`
 * and `missed` frames also reports that this client was too slow. Times come from the clock of the relay. They are corrected if it differs from
 * the clock of this machine by more than a second.
 *
 * Completes when the feed of the relay completes. Errors with a `TradeFeedError`: the stop of the feed itself (`connection-replaced`,
 * `invalid-api-key`, …) after `maxFeedStops` of them in a row, `relay-refused` (401, 403), `invalid-relay` (no relay at that address), or
 * `retries-exhausted`. Connects again after `relay-unreachable`, `relay-headers-failed`, `relay-full` (503, not before `Retry-After`),
 * `relay-failed` (5xx, 408, 429), `relay-lost`, `relay-stalled`, `invalid-relay-data`, `relay-closing` and `relay-session-ended`. A wait ends early
 * when the browser is online again, the page becomes visible, or the page returns from the back/forward cache.
 *
 * @typeParam T - the type of the values of an operator on the server (`select`): each arrives as a {@link RelayedValue}. It is not checked here.
 *   Without `T` the type of the events has no values.
 * @param url - the address of the relay, absolute or relative to the page
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
): Observable<RelayedEvent | ([T] extends [never] ? never : RelayedValue<T>)> => {
  type Value = [T] extends [never] ? never : RelayedValue<T>;
  const settings = resolveRelayFeed(url, options);
  const page$ = pageFeed$.bind(undefined, settings);
  // If the module cannot be loaded, this page has a separate stream.
  const shared = () =>
    import('./tabs/shared-feed.js').then(
      ({ sharedFeed$ }) => sharedFeed$(settings, page$),
      () => page$(),
    );
  return (settings.tabs === 'share' ? defer(shared).pipe(mergeAll()) : page$()) as Observable<RelayedEvent | Value>;
};

/** Receives over a separate stream. Resumes at `point`; the default is the point that `settings.resumeIn` stores. */
const pageFeed$ = (settings: RelayFeedSettings, point?: ResumePoint): Observable<Received> =>
  withLifecycle<Received>((emit) =>
    relayConnection$(settings, point ?? resumePoint(settings)).pipe(
      retryWhen((ends: Observable<ConnectionEnd>) =>
        ends.pipe(
          scan<ConnectionEnd, FeedStops, Pick<FeedStops, 'stops'>>(
            ({ stops }, end) => afterEnd(settings.maxFeedStops, stops, end),
            { stops: 0 },
          ),
          map(({ failure }) => applyClassify(settings, failure)),
          backoff(settings.backoff, reconnecting(emit), pageWakes$),
        ),
      ),
    ),
  );
