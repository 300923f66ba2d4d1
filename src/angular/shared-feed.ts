import {
  computed,
  DestroyRef,
  inject,
  InjectionToken,
  NgZone,
  PLATFORM_ID,
  signal,
  untracked,
  type WritableSignal,
} from '@angular/core';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  merge,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  share,
  startWith,
  Subject,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { type ConnectionStatus, isSameStatus, statusOf } from '../operators/connection-status.js';
import { feedStats, type FeedStats } from '../operators/feed-stats.js';
import {
  checkFreshness,
  type Freshness,
  freshness as freshnessOf,
  type FreshnessOptions,
} from '../operators/freshness.js';
import { FeedFollower, unannouncedStop } from '../operators/items/follow-feed.js';
import { shareFeed } from '../operators/share-feed.js';
import { tumblingWindow } from '../operators/tumbling-window.js';
import { integerMs, timeRules } from '../operators/window/contents.js';
import type { FeedWindow, FramesOptions, TimeWindowOptions } from '../operators/window/window.js';
import { isRelayedValue, type RelayedEvent } from '../protocol/event.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { row } from '../protocol/failures/meanings.js';
import type { AnyFrame } from '../protocol/frame.js';
import { anObject, durationMs, positiveMs, validated } from '../protocol/validate.js';

export const SHARED_FEED = new InjectionToken<ReturnType<typeof sharedFeed>>('rx-trade-feed: the shared feed');

/**
 * Creates a provider's feed, in its injection context. While `open$` has a subscriber, but never on a server, it
 * subscribes to what `openEvents` returns.
 */
export const sharedFeed = (openEvents: () => Observable<RelayedEvent>, settings: FeedSignalSettings) => {
  const zone = inject(NgZone);
  const isServer = inject<unknown>(PLATFORM_ID) === 'server';
  // Untracked, because a template may call this.
  const outside = (work: () => void): void => zone.runOutsideAngular(() => untracked(work));
  const destroyed$ = whenDestroyed$(inject(DestroyRef), outside);

  const status = signal<ConnectionStatus>(connecting(), { equal: isSameStatus });
  const failure = computed(() => failureIn(status()));
  const stats = signal<FeedStats | undefined>(undefined);
  const window = signal<FeedWindow<AnyFrame> | undefined>(undefined);
  const freshness = signal<Freshness | undefined>(undefined);
  const live$ = new Subject<RelayedEvent>();
  const feed = new FeedFollower();
  // A late subscriber must learn that the connection still settles.
  const events$ = defer(() => merge(feed.joinedAt(Date.now()), live$));
  const restarts$ = new Subject<void>();

  const runs$ = defer(() => {
    // Restarting subscribes again, and resumes at the position this feed has reached.
    const run$ = untilStopped(openEvents(), status);
    return restarts$.pipe(
      filter(() => failure() !== undefined),
      startWith(undefined),
      tap(() => status.set(connecting())),
      // A subscriber may restart on `stopped`, so `concatMap` starts the next run only once all have received it.
      concatMap(() => run$),
      tap((event) => {
        feed.next(event);
        live$.next(event);
      }),
    );
  });
  const open$ = merge(
    events$.pipe(feedStats(settings.stats), setIn(stats)),
    settings.freshness ? events$.pipe(freshnessOf(settings.freshness), setIn(freshness)) : EMPTY,
    runs$,
  ).pipe(ignoreElements(), takeUntil(destroyed$));
  const windows$ = events$.pipe(
    // A relay with `select` sends values instead of frames.
    filter((event) => !isRelayedValue(event)),
    tumblingWindow(settings.window),
    setIn(window),
    takeUntil(destroyed$),
    share(),
  );

  return {
    /** Emits the events while the feed is open. Never errors. */
    events$,
    status: status.asReadonly(),
    stats: stats.asReadonly(),
    window: window.asReadonly(),
    freshness: freshness.asReadonly(),
    failure,
    /** Keeps the feed open while it has a subscriber. Emits nothing. */
    open$: isServer ? NEVER : open$.pipe(shareFeed({ lingerMs: settings.lingerMs })),
    /** Computes the windows while it has a subscriber. */
    windows$: isServer ? NEVER : windows$,
    /** Runs code without change detection. */
    outside,
    restart: () => outside(() => restarts$.next()),
  };
};

const failureIn = (status: ConnectionStatus) => (status.state === 'stopped' ? status.failure : undefined);

/** Sets a signal to each value, and resets it at the end. */
const setIn = <T>(target: WritableSignal<T | undefined>) =>
  tap<T>({ next: (value) => target.set(value), finalize: () => target.set(undefined) });

/** Runs the feed until it stops. An error, and the end of the source, become the event `stopped`. Sets the status. */
const untilStopped = (source$: Observable<RelayedEvent>, status: WritableSignal<ConnectionStatus>) =>
  defer(() => {
    const feed = new FeedFollower();
    const follow = (event: RelayedEvent): void => {
      if (feed.state !== feed.next(event)) status.update((before) => statusOf(feed.state) ?? before);
    };
    return concat(source$, throwError(isOver)).pipe(
      catchError((error: unknown) => {
        // Until a restart, windows and figures must count an outage, not a quiet feed.
        const stopped = unannouncedStop(feed.state, error);
        return stopped ? of(stopped) : EMPTY;
      }),
      tap(follow),
    );
  });

const connecting = (): ConnectionStatus => ({ state: 'connecting', since: Date.now() });

// A feed should never complete. If this didn't error, the status would stay `live` after the last event.
const isOver = () => createFailure(sourceCompleted, { stage: 'stream' });

const sourceCompleted = row({}, 'relay-source-failed', 'stop', [
  'The feed is over: its source completed.',
  'Restart the feed to receive more.',
]);

/**
 * Emits outside Angular's zone when the owner of `destroyRef`, such as a component, is destroyed, or at once if it
 * already was. `takeUntilDestroyed` throws for a destroyed component in Angular 20.0: callbacks may run after that.
 */
export const whenDestroyed$ = (destroyRef: DestroyRef, outside: (work: () => void) => void): Observable<void> => {
  const destroyed$ = new ReplaySubject<void>(1);
  destroyRef.onDestroy(() => outside(() => destroyed$.next()));
  return destroyed$;
};

/** The options of the signal `window`. */
export interface WindowSignalOptions extends TimeWindowOptions, FramesOptions {
  /** The length of a window in ms, an integer. @defaultValue 1 000 */
  readonly lengthMs?: number | undefined;
  /** The most frames in a window. Further ones are counted in `dropped`. @defaultValue 1 000 */
  readonly maxFrames?: number | undefined;
}

/** Options of the signals, and of how long the feed stays open once no component uses it. */
export interface FeedSignalOptions {
  /** How often the signal `stats` is set: `everyMs`, in ms. @defaultValue `{ everyMs: 1_000 }` */
  readonly stats?: { readonly everyMs?: number | undefined } | undefined;
  /** Windows of the signal `window`, set when each ends. @defaultValue `{ lengthMs: 1_000, maxFrames: 1_000 }` */
  readonly window?: WindowSignalOptions | undefined;
  /** When the newest frame is too old, for the signal `freshness`. @defaultValue none: it stays `undefined` */
  readonly freshness?: FreshnessOptions | undefined;
  /**
   * How long the feed stays open after its last component is destroyed, in ms, so that changing the route doesn't
   * reconnect. 0 closes it at once. @defaultValue 1 000
   */
  readonly lingerMs?: number | undefined;
}

export const feedSignalRules = { stats: anObject, window: anObject, freshness: anObject, lingerMs: durationMs };

export const resolveFeedSignals = (options: FeedSignalOptions) => {
  const { stats = {}, window = {}, freshness, lingerMs = 1_000 } = validated(options, feedSignalRules);
  if (freshness) checkFreshness(freshness, 'freshness.');
  return {
    stats: validated(stats, { everyMs: positiveMs }, 'stats.'),
    window: { lengthMs: 1_000, maxFrames: 1_000, ...validated(window, windowRules, 'window.') },
    freshness,
    lingerMs,
  };
};

const windowRules = { lengthMs: integerMs, ...timeRules };

export type FeedSignalSettings = ReturnType<typeof resolveFeedSignals>;
