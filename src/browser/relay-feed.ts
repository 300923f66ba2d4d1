import { defer, map, merge, mergeAll, type Observable, retryWhen, Subject, tap } from 'rxjs';
import type { LifecycleEvent, RelayedEvent } from '../protocol/event.js';
import { applyClassify } from '../protocol/failures/apply-classify.js';
import { backoff } from '../reconnect/reconnect.js';
import type { RelayedValue } from '../protocol/relayed-value.js';
import { reportReconnect } from '../reconnect/report-reconnect.js';
import { reportStop } from '../reconnect/report-stop.js';
import type { Ended } from './attempt.js';
import { feedStops } from './feed-stops.js';
import { pageWakes$ } from './page-wakes.js';
import type { Received } from '../protocol/event-line.js';
import { relayConnection$ } from './relay-connection.js';
import { type RelayFeedOptions, type RelayFeedSettings, resolveRelayFeed } from './relay-feed-options.js';
import { type ResumePoint, resumePoint } from './resume-point.js';

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
 * `invalid-api-key`, …) when the relay has said so `maxFeedStops` times in a row, `relay-refused` (401, 403), `invalid-relay` (no relay at that
 * address), or `retries-exhausted`. Goes on after `relay-unreachable`, `relay-headers-failed`, `relay-full` (503, not before `Retry-After`),
 * `relay-failed` (5xx, 408, 429), `relay-lost`, `relay-stalled`, `invalid-relay-data`, `relay-closing` and `relay-session-ended`. A wait ends early
 * when the browser is online again or the page becomes visible.
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
): Observable<RelayedEvent | ([T] extends [never] ? never : RelayedValue<T>)> => {
  type Value = [T] extends [never] ? never : RelayedValue<T>;
  const settings = resolveRelayFeed(url, options);
  const own$ = ownFeed$.bind(undefined, settings);
  // One that cannot load it has a stream for itself.
  const shared = () =>
    import('./tabs/shared-feed.js').then(
      ({ sharedFeed$ }) => sharedFeed$(settings, own$),
      () => own$(),
    );
  return (settings.tabs === 'share' ? defer(shared).pipe(mergeAll()) : own$()) as Observable<RelayedEvent | Value>;
};

/** Receives over a stream of its own, from a place on: at first that of the settings. */
const ownFeed$ = (settings: RelayFeedSettings, given?: ResumePoint): Observable<Received> =>
  defer(() => {
    const lifecycle = new Subject<LifecycleEvent>();
    const emit = (event: LifecycleEvent) => lifecycle.next(event);
    const reconnects = backoff(settings.backoff, reportReconnect(emit), pageWakes$);
    return merge(
      lifecycle,
      relayConnection$(settings, given ?? resumePoint(settings)).pipe(
        retryWhen((ends: Observable<Ended>) =>
          ends.pipe(
            feedStops(settings.maxFeedStops),
            map((failure) => applyClassify(settings, failure)),
            reconnects,
          ),
        ),
        tap({ error: reportStop(emit), complete: () => lifecycle.complete() }),
      ),
    );
  });
