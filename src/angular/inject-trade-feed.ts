import { assertInInjectionContext, DestroyRef, inject, type Signal } from '@angular/core';
import { filter, type Observable, takeUntil } from 'rxjs';
import type { ConnectionStatus } from '../operators/connection-status.js';
import type { FeedStats } from '../operators/feed-stats.js';
import type { Freshness } from '../operators/freshness.js';
import type { FeedWindow } from '../operators/window/window.js';
import type { RelayedEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Frame } from '../protocol/frame.js';
import { SHARED_FEED, whenDestroyed$ } from './shared-feed.js';

/** The status of the feed. */
export type FeedStatus = ConnectionStatus;

/**
 * Gives a component the feed. All components of a provider share the signals. A signal is set when its value changes,
 * never for each frame.
 */
export interface AngularTradeFeed {
  /**
   * Emits frames and lifecycle events from now on, and `opened` first while its connection isn't complete. Completes
   * when the component is destroyed. Never errors: a stop, or a source that completes, becomes the event `stopped`.
   * Emits outside Angular's zone, so set a signal to update the view.
   */
  readonly events$: Observable<RelayedEvent>;
  /** Emits the frames only. Otherwise like `events$`. */
  readonly frames$: Observable<Frame<Uint8Array>>;
  /** The status: `connecting`, `live`, `reconnecting` or `stopped`, with its start time and its reason. */
  readonly status: Signal<FeedStatus>;
  /** The figures of the last period; `undefined` until it ends. Totals count from when the feed was opened. */
  readonly stats: Signal<FeedStats | undefined>;
  /** The latest window; `undefined` until one ends. Only computed while a component uses this signal. */
  readonly window: Signal<FeedWindow<Frame<Uint8Array>> | undefined>;
  /**
   * Whether the newest frame is too old: `stale` with the time since when, or `fresh` after that. `undefined` while
   * every frame has arrived in time, and if `provideTradeFeed` has no option `freshness`.
   */
  readonly freshness: Signal<Freshness | undefined>;
  /** The failure that stopped the feed; `undefined` while it runs. */
  readonly failure: Signal<TradeFeedError | undefined>;
  /** Restarts the feed after a stop. Does nothing while the feed runs. */
  readonly restart: () => void;
}

/**
 * Returns the feed of the nearest `provideTradeFeed`, and keeps it open until the component is destroyed.
 *
 * You can also call it in directives, services and other code with an injection context. The first call opens the
 * connection, and all share it. It closes `lingerMs` after the last caller is destroyed. On a server nothing is opened:
 * signals keep their initial values, and `frames$` emits nothing.
 *
 * @throws Error when there is no `provideTradeFeed`, or outside an injection context
 * @example
 * ```ts
 * import { signal } from '@angular/core';
 * import { injectTradeFeed } from 'rx-trade-feed/angular';
 *
 * class Ticker {
 *   // In the template: feed.status().state
 *   protected readonly feed = injectTradeFeed();
 *   protected readonly bytes = signal(0);
 *
 *   constructor() {
 *     this.feed.frames$.subscribe((frame) =>
 *       this.bytes.update((bytes) => bytes + frame.data.length),
 *     );
 *   }
 * }
 * ```
 */
export const injectTradeFeed = (): AngularTradeFeed => {
  assertInInjectionContext(injectTradeFeed);
  const feed = inject(SHARED_FEED, { optional: true });
  if (feed === null) throw new Error(notProvided);
  const { open$, windows$, outside, window, ...shared } = feed;
  const destroyed$ = whenDestroyed$(inject(DestroyRef), outside);
  const keep = (work$: Observable<unknown>): void => outside(() => work$.pipe(takeUntil(destroyed$)).subscribe());
  keep(open$);

  const events$ = feed.events$.pipe(takeUntil(destroyed$));
  let usesWindow = false;
  return {
    ...shared,
    events$,
    // A relay with `select` sends values instead of frames.
    frames$: events$.pipe(filter((event) => event.type === 'frame')),
    get window() {
      if (!usesWindow) keep(windows$);
      usesWindow = true;
      return window;
    },
  };
};

const notProvided =
  'injectTradeFeed() found no feed, because no provider of this component calls provideTradeFeed(). ' +
  'Add provideTradeFeed({ url }) to the providers of the application (app.config.ts) or of the route.';
