import { DestroyRef, inject, InjectionToken, NgZone, PLATFORM_ID, type Signal, signal, untracked } from '@angular/core';
import { catchError, concat, concatMap, connect, defer, EMPTY, filter, finalize, ignoreElements } from 'rxjs';
import { merge, NEVER, type Observable, of, share, startWith, Subject, takeUntil, tap, throwError } from 'rxjs';
import { type ConnectionStatus, connectionStatus } from '../operators/connection-status.js';
import { feedStats } from '../operators/feed-stats.js';
import { type Freshness, freshness as freshnessOf } from '../operators/freshness.js';
import { shareFeed } from '../operators/share-feed.js';
import type { FeedStats } from '../operators/items/feed-tally.js';
import { tumblingWindow } from '../operators/tumbling-window.js';
import type { FeedWindow } from '../operators/window/feed-window.js';
import type { RelayedEvent } from '../protocol/event.js';
import { failureOf } from '../protocol/failures/failure-of.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { AnyFrame } from '../protocol/frame.js';
import { sourceCompleted } from '../protocol/failures/client-meanings.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { isRelayedValue } from '../protocol/relayed-value.js';
import type { FeedSignalSettings } from './signal-options.js';
import { whenDestroyed$ } from './when-destroyed.js';

/** The feed of a provider, which all its components share. */
export interface SharedFeed {
  /** Emits the events while the feed is open. Never errors. */
  readonly events$: Observable<RelayedEvent>;
  readonly status: Signal<ConnectionStatus>;
  readonly stats: Signal<FeedStats | undefined>;
  readonly window: Signal<FeedWindow<AnyFrame> | undefined>;
  readonly freshness: Signal<Freshness | undefined>;
  readonly failure: Signal<TradeFeedError | undefined>;
  /** Keeps the feed open while it is subscribed to. Emits nothing. */
  readonly open$: Observable<never>;
  /** Computes the windows while it is subscribed to. */
  readonly windows$: Observable<unknown>;
  /** Calls a function outside Angular's zone, so that it causes no change detection. */
  readonly outside: (work: () => void) => void;
  readonly restart: () => void;
}

/** The token of the feed that `provideTradeFeed` provides to `injectTradeFeed`. */
export const SHARED_FEED = new InjectionToken<SharedFeed>('rx-trade-feed: the shared feed');

/**
 * Creates the feed of a provider, in its injection context. It subscribes to the events while `open$` is subscribed to, never on a server.
 *
 * @param openEvents - returns the events of the relay; called each time the feed is opened. Each subscription is a connection
 */
export const sharedFeed = (openEvents: () => Observable<RelayedEvent>, settings: FeedSignalSettings): SharedFeed => {
  const zone = inject(NgZone);
  const isServer = inject<unknown>(PLATFORM_ID) === 'server';
  // Untracked, because a template may call this.
  const outside = (work: () => void): void => zone.runOutsideAngular(() => untracked(work));
  const destroyed$ = whenDestroyed$(inject(DestroyRef), outside);

  const status = signal<ConnectionStatus>(connectingSince(Date.now()));
  const stats = signal<FeedStats | undefined>(undefined);
  const window = signal<FeedWindow<AnyFrame> | undefined>(undefined);
  const freshness = signal<Freshness | undefined>(undefined);
  const failure = signal<TradeFeedError | undefined>(undefined);
  const events$ = new Subject<RelayedEvent>();
  const restarts$ = new Subject<void>();

  const running = (source$: Observable<RelayedEvent>) =>
    defer(() => {
      status.set(connectingSince(Date.now()));
      let last: RelayedEvent['type'] | undefined;
      return concat(source$, throwError(isOver)).pipe(
        connect((run$) =>
          merge(
            run$.pipe(
              connectionStatus(),
              tap((now) => status.set(now)),
              ignoreElements(),
              ignoreErrors,
            ),
            run$,
          ),
        ),
        tap((event) => {
          // A subscriber may restart the feed when it receives `stopped`. With a `retry` in the source, events follow `stopped`.
          if (event.type === 'watermark') return;
          if (event.type === 'stopped') failure.set(event.failure);
          else if (last === 'stopped') failure.set(undefined);
          last = event.type;
        }),
        catchError((error: unknown) => {
          if (last === 'stopped') return EMPTY;
          const stop = failureOf(error);
          failure.set(stop);
          status.set({ state: 'stopped', since: stop.endedAt, failure: stop });
          // Windows and figures must treat the time until a restart as an outage, not as a time without frames.
          return of<RelayedEvent>({ type: 'stopped', at: Date.now(), failure: stop });
        }),
      );
    });

  const open$ = merge(
    events$.pipe(
      feedStats(settings.stats),
      tap((figures) => stats.set(figures)),
    ),
    settings.freshness
      ? events$.pipe(
          freshnessOf(settings.freshness),
          tap((now) => freshness.set(now)),
        )
      : EMPTY,
    defer(() => {
      const run$ = running(openEvents());
      return restarts$.pipe(
        filter(() => failure() !== undefined),
        startWith(undefined),
        tap(() => failure.set(undefined)),
        // A subscriber may restart on `stopped`: `concatMap` begins the next run after all subscribers have received the event.
        concatMap(() => run$),
        tap((event) => events$.next(event)),
      );
    }),
  ).pipe(
    ignoreElements(),
    finalize(() => {
      stats.set(undefined);
      freshness.set(undefined);
    }),
    takeUntil(destroyed$),
  );
  const windows$ = events$.pipe(
    // A relay with `select` sends values instead of frames.
    filter((event) => !isRelayedValue(event)),
    tumblingWindow(settings.window),
    tap((latest) => window.set(latest)),
    finalize(() => window.set(undefined)),
    takeUntil(destroyed$),
    share(),
  );

  return {
    events$,
    status: status.asReadonly(),
    stats: stats.asReadonly(),
    window: window.asReadonly(),
    freshness: freshness.asReadonly(),
    failure: failure.asReadonly(),
    open$: isServer ? NEVER : open$.pipe(shareFeed({ lingerMs: settings.lingerMs })),
    windows$: isServer ? NEVER : windows$,
    outside,
    restart: () => outside(() => restarts$.next()),
  };
};

const connectingSince = (since: number): ConnectionStatus => ({ state: 'connecting', since });

// The other branch handles the same error.
const ignoreErrors = <T>(source: Observable<T>): Observable<T> => source.pipe(catchError(() => EMPTY));

// A feed should never complete. Without this error, the status would stay `live` after the last event.
const isOver = (): TradeFeedError => createFailure(sourceCompleted, { stage: 'stream' });
