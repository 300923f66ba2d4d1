import { assertInInjectionContext, DestroyRef, inject, type Signal } from '@angular/core';
import { filter, type Observable, takeUntil } from 'rxjs';
import type { FeedStats } from '../operators/items/feed-tally.js';
import type { FeedWindow } from '../operators/window/feed-window.js';
import type { RelayedEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Frame } from '../protocol/frame.js';
import type { FeedStatus } from './feed-status.js';
import { SHARED_FEED } from './shared-feed.js';
import { whenDestroyed$ } from './when-destroyed.js';

/**
 * The feed, as a component sees it.
 *
 * The signals are those of all components of the provider. They are set when what they tell changes, never for each frame.
 */
export interface AngularTradeFeed {
  /**
   * The frames and what happens around them, from now on. Completes when the component is destroyed, and never errors: a stop is
   * the event `stopped`; so is the end of a source that completes. Emits outside
   * Angular's zone: set a signal to show something.
   */
  readonly events$: Observable<RelayedEvent>;
  /** The frames alone; otherwise as `events$`. */
  readonly frames$: Observable<Frame<Uint8Array>>;
  /** How it stands: `connecting`, `live`, `reconnecting` or `stopped`, with since when and why. */
  readonly status: Signal<FeedStatus>;
  /** The figures, once a period; `undefined` before the end of the first one. Totals count from when the feed was opened. */
  readonly stats: Signal<FeedStats | undefined>;
  /** The latest window; `undefined` before the end of the first one. Windows are made while a component uses this, and else not. */
  readonly window: Signal<FeedWindow<Frame<Uint8Array>> | undefined>;
  /** What stopped the feed, for good or until `restart`; `undefined` while it runs. */
  readonly failure: Signal<TradeFeedError | undefined>;
  /** Begins anew after a stop. Does nothing while the feed runs. */
  readonly restart: () => void;
}

/**
 * Gives a component the feed of the nearest `provideTradeFeed`, and keeps the feed open until the component is destroyed.
 *
 * Also for directives, services and whatever else has an injection context: the feed ends with it. All share one connection: it is
 * opened with the first, and closed `lingerMs` after the last was destroyed. On a server nothing is opened: the signals keep what they began with, and
 * `frames$` stays silent.
 *
 * @throws Error when there is no `provideTradeFeed`, or outside an injection context
 * @example
 * ```ts
 * import { signal } from '@angular/core';
 * import { injectTradeFeed } from 'rx-trade-feed/angular';
 *
 * class Ticker {
 *   protected readonly feed = injectTradeFeed(); // in the template: feed.status().state
 *   protected readonly bytes = signal(0);
 *
 *   constructor() {
 *     this.feed.frames$.subscribe((frame) => this.bytes.update((bytes) => bytes + frame.data.length));
 *   }
 * }
 * ```
 */
export const injectTradeFeed = (): AngularTradeFeed => {
  assertInInjectionContext(injectTradeFeed);
  const feed = inject(SHARED_FEED, { optional: true });
  if (feed === null) throw new Error(notProvided);
  const destroyed$ = whenDestroyed$(inject(DestroyRef), feed.outside);
  const hold = (what$: Observable<unknown>): void => feed.outside(() => what$.pipe(takeUntil(destroyed$)).subscribe());
  hold(feed.held$);

  const events$ = feed.events$.pipe(takeUntil(destroyed$));
  const { status, stats, failure, restart } = feed;
  let usesWindow = false;
  return {
    events$,
    // A relay with `select` sends values, which are no frames.
    frames$: events$.pipe(filter((event) => event.type === 'frame')),
    status,
    stats,
    failure,
    restart,
    get window() {
      if (!usesWindow) hold(feed.windows$);
      usesWindow = true;
      return feed.window;
    },
  };
};

const notProvided =
  'injectTradeFeed() finds no feed here: there is no provideTradeFeed(). ' +
  'Add provideTradeFeed({ url }) to the providers of the application (app.config.ts) or of the route.';
