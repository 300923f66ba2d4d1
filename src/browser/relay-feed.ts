import {
  defer,
  EMPTY,
  filter,
  fromEvent,
  map,
  merge,
  mergeAll,
  type Observable,
  of,
  retryWhen,
  scan,
  timeout,
} from 'rxjs';
import { reconnects, withEvents } from '../feed/lifecycle.js';
import type { Received } from '../protocol/event-line.js';
import type { RelayedEvent, RelayedValue } from '../protocol/event.js';
import { applyClassify, copyFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { pageGlobals } from './page-globals.js';
import { type ConnectionEnd, relayConnection$ } from './relay-connection.js';
import { type RelayFeedOptions, type RelayFeedSettings, resolveRelayFeed } from './relay-feed-options.js';
import { type PageEvent, ResumePoint } from './resume-point.js';

/**
 * Receives a feed from a relay, in a browser or in Node: frames and lifecycle events in order, like `tradeFeedEvents$`
 * on the server.
 *
 * Cold: each subscription is a client of the relay, which has one connection to the service for all of them. A frame's
 * `data` is a `Uint8Array`. First emits the events that describe the current state of the feed. When the connection to
 * the relay ends, reconnects with the backoff of `tradeFeed$` and resumes after the last event; a `gap` covers frames
 * that are missing. A `gap` with the code `relay-behind` and `missed` frames means that this client was too slow. Times
 * come from the relay's clock, and are corrected if it differs from this machine's by more than a second at the first
 * connection. Setting this machine's clock later doesn't move them.
 *
 * Completes when the relay's feed completes. Errors with a `TradeFeedError`: the stop of the feed itself
 * (`connection-replaced`, `invalid-api-key`, …) after `maxFeedStops` of them in a row, `relay-refused` (401, 403),
 * `invalid-relay` (no relay at that address), or `retries-exhausted`. Reconnects after `relay-unreachable`,
 * `relay-headers-failed`, `relay-full` (503, not before `Retry-After`), `relay-failed` (5xx, 408, 429), `relay-lost`,
 * `relay-stalled`, `invalid-relay-data`, `relay-closing` and `relay-session-ended`. It stops waiting early when the
 * browser is back online, the page becomes visible, or the page returns from the back/forward cache.
 *
 * @typeParam T - the type of the values of an operator on the server (`select`): each arrives as a {@link
 *   RelayedValue}. Not checked at runtime. If you leave `T` out, the type of the events has no values.
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
  // If the module can't be loaded in time, this page opens a separate stream.
  const loading = { first: settings.connectTimeoutMs, scheduler: settings.scheduler, with: () => of(page$()) };
  const shared = () =>
    import('./tabs/shared-feed.js').then(
      ({ sharedFeed$ }) => sharedFeed$(settings, page$),
      () => page$(),
    );
  const shared$ = defer(shared).pipe(timeout(loading), mergeAll());
  return (settings.tabs === 'share' ? shared$ : page$()) as Observable<RelayedEvent | Value>;
};

export const pageFeed$ = (settings: RelayFeedSettings, given?: ResumePoint): Observable<Received> =>
  defer(() => {
    const point = given ?? new ResumePoint(settings);
    return withEvents<Received>((deliver) => {
      const emit = (event: PageEvent): void => {
        deliver(point.stamp(event));
      };
      const now = () => point.clock.now();
      const stop = (failure: unknown): void => {
        if (failure instanceof TradeFeedError) emit({ type: 'stopped', at: now(), failure });
      };
      return relayConnection$(settings, point).pipe(
        retryWhen((ends: Observable<ConnectionEnd>) =>
          ends.pipe(
            scan(({ stops }, end) => afterEnd(settings.maxFeedStops, stops, end), noStops),
            map(({ failure }) => applyClassify(settings, failure)),
            reconnects(settings.backoff, { emit, stop, now }, pageWakes$),
          ),
        ),
      );
    });
  });

// `scan` doesn't emit its seed.
const noStops = { stops: 0 } as ReturnType<typeof afterEnd>;

/**
 * Counts the stops of the feed in a row. Changes their verdict to `backoff` until there are `maxFeedStops`. `opened`
 * restarts the count.
 *
 * A relay that's being replaced, or whose account is briefly used elsewhere, sends a stop to all pages at once. They
 * retry instead of stopping.
 */
export const afterEnd = (maxFeedStops: number, before: number, { failure, isOfFeed, hasOpened }: ConnectionEnd) => {
  const inRow = hasOpened ? 0 : before;
  if (!isOfFeed || failure.verdict !== 'stop') return { stops: inRow, failure };
  const stops = inRow + 1;
  return { stops, failure: stops < maxFeedStops ? copyFailure(failure, { verdict: 'backoff' }) : failure };
};

/**
 * Emits when a connection is likely to work again: the browser is online, or the page becomes visible or returns from
 * the back/forward cache. Emits nothing where there's no page, for example in Node.
 */
export const pageWakes$: Observable<Event> = defer(() =>
  pageGlobals.addEventListener === undefined
    ? EMPTY
    : merge(...wakes.map((name) => fromEvent<Event>(pageGlobals as EventTarget, name))),
).pipe(filter(({ type }) => type !== 'visibilitychange' || pageGlobals.document?.visibilityState === 'visible'));

// `visibilitychange` fires on the document, and bubbles to the window.
const wakes = ['online', 'pageshow', 'visibilitychange'];
