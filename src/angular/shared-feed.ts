import { DestroyRef, inject, InjectionToken, NgZone, PLATFORM_ID, type Signal, signal, untracked } from '@angular/core';
import { catchError, concat, concatMap, connect, defer, EMPTY, filter, finalize, ignoreElements } from 'rxjs';
import { merge, NEVER, type Observable, of, share, startWith, Subject, takeUntil, tap, throwError } from 'rxjs';
import { connectionStatus } from '../operators/connection-status.js';
import { feedStats } from '../operators/feed-stats.js';
import { shareFeed } from '../operators/share-feed.js';
import type { FeedStats } from '../operators/items/feed-tally.js';
import { tumblingWindow } from '../operators/tumbling-window.js';
import type { FeedWindow } from '../operators/window/feed-window.js';
import type { RelayedEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { AnyFrame } from '../protocol/frame.js';
import { sourceCompleted, sourceFailed } from '../protocol/failures/client-meanings.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { isRelayedValue } from '../protocol/relayed-value.js';
import type { FeedStatus } from './feed-status.js';
import type { FeedSignalSettings } from './signal-options.js';
import { whenDestroyed$ } from './when-destroyed.js';

/** The one feed of a provider, which all its components share. */
export interface SharedFeed {
  /** What comes while somebody holds the feed. Never errors. */
  readonly events$: Observable<RelayedEvent>;
  readonly status: Signal<FeedStatus>;
  readonly stats: Signal<FeedStats | undefined>;
  readonly window: Signal<FeedWindow<AnyFrame> | undefined>;
  readonly failure: Signal<TradeFeedError | undefined>;
  /** Keeps the feed open while it is subscribed to. Emits nothing. */
  readonly held$: Observable<never>;
  /** Keeps windows coming while it is subscribed to. */
  readonly windows$: Observable<unknown>;
  /** Runs something outside Angular's zone, where it costs no change detection. */
  readonly outside: (work: () => void) => void;
  readonly restart: () => void;
}

/** Where `injectTradeFeed` finds what `provideTradeFeed` provides. */
export const SHARED_FEED = new InjectionToken<SharedFeed>('rx-trade-feed: the shared feed');

/**
 * Makes the feed of a provider, in its injection context. Nothing is subscribed to before somebody holds it; on a server, never.
 *
 * @param open - gives the events of the relay, of which each subscription is a connection; asked each time the feed is opened
 */
export const sharedFeed = (open: () => Observable<RelayedEvent>, settings: FeedSignalSettings): SharedFeed => {
  const zone = inject(NgZone);
  const isServer = inject<unknown>(PLATFORM_ID) === 'server';
  // Untracked, since a template may be what asks.
  const outside = (work: () => void): void => zone.runOutsideAngular(() => untracked(work));
  const destroyed$ = whenDestroyed$(inject(DestroyRef), outside);

  const status = signal<FeedStatus>(connectingSince(Date.now()));
  const stats = signal<FeedStats | undefined>(undefined);
  const window = signal<FeedWindow<AnyFrame> | undefined>(undefined);
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
              orNothing,
            ),
            run$,
          ),
        ),
        tap((event) => {
          // A subscriber may restart the feed when it receives `stopped`. A relay that retries its source goes on after it.
          if (event.type === 'watermark') return;
          if (event.type === 'stopped') failure.set(event.failure);
          else if (last === 'stopped') failure.set(undefined);
          last = event.type;
        }),
        catchError((error: unknown) => {
          if (last === 'stopped') return EMPTY;
          const stop = stopBy(error);
          failure.set(stop);
          status.set({ state: 'stopped', since: stop.endedAt, failure: stop });
          // Windows and figures must not take the time until a restart for one without frames.
          return of<RelayedEvent>({ type: 'stopped', at: Date.now(), failure: stop });
        }),
      );
    });

  const open$ = merge(
    events$.pipe(
      feedStats(settings.stats),
      tap((figures) => stats.set(figures)),
    ),
    defer(() => {
      const run$ = running(open());
      return restarts$.pipe(
        filter(() => failure() !== undefined),
        startWith(undefined),
        tap(() => failure.set(undefined)),
        // Who hears of a stop may restart at once: the next run begins when all have heard of it.
        concatMap(() => run$),
        tap((event) => events$.next(event)),
      );
    }),
  ).pipe(
    ignoreElements(),
    finalize(() => stats.set(undefined)),
    takeUntil(destroyed$),
  );
  const windows$ = events$.pipe(
    // A relay with `select` sends values, which are no frames.
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
    failure: failure.asReadonly(),
    held$: isServer ? NEVER : open$.pipe(shareFeed({ lingerMs: settings.lingerMs })),
    windows$: isServer ? NEVER : windows$,
    outside,
    restart: () => outside(() => restarts$.next()),
  };
};

const connectingSince = (since: number): FeedStatus => ({ state: 'connecting', since });

// The same error comes where it is handled, too.
const orNothing = <T>(source: Observable<T>): Observable<T> => source.pipe(catchError(() => EMPTY));

const stopBy = (error: unknown): TradeFeedError => {
  if (error instanceof TradeFeedError) return error;
  return createFailure(sourceFailed, { stage: 'stream', cause: error });
};

// A feed does not end by itself: what follows would look like a feed that has nothing to say.
const isOver = (): TradeFeedError => createFailure(sourceCompleted, { stage: 'stream' });
