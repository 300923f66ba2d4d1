import {
  computed,
  createEnvironmentInjector,
  DestroyRef,
  EnvironmentInjector,
  inject,
  Injectable,
  runInInjectionContext,
  signal,
} from '@angular/core';
import { takeUntilDestroyed } from '@angular/core/rxjs-interop';
import { type AngularTradeFeed, injectTradeFeed, provideTradeFeedFrom } from 'rx-trade-feed/angular';
import type { RelayedEvent } from 'rx-trade-feed/browser';
import {
  catchError,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  NEVER,
  type Observable,
  retry,
  Subject,
  switchMap,
  tap,
} from 'rxjs';
import { FeedStop } from '../feed/feed-stop';
import { CandleStore } from './candle-store';
import {
  type CandleWindow,
  type LastPrice,
  type MarketsHistory,
  marketStream$,
  type MarketValue,
} from './market-stream';

/** The delay before the next request when the server doesn't answer, in ms. */
const retryAfterMs = 2_000;

/** Receives candles and prices while the view is shown. The stream closes with the view. */
@Injectable()
export class MarketFeed {
  private readonly feed = ownFeed(() => this.events$);
  private readonly known = signal<MarketsHistory['payload'] | undefined>(undefined);
  private readonly steps = signal(0);
  private readonly last = signal<ReadonlyMap<string, LastPrice>>(new Map());
  private readonly lag = signal(Infinity);
  private readonly feedStop = new FeedStop(this.feed);
  private readonly holes = new Subject<void>();

  /** The stored windows; `undefined` before the first answer of the server. */
  store: CandleStore | undefined;
  /** Changes with each new window. */
  readonly step = this.steps.asReadonly();
  readonly status = this.feed.status;
  /** The failure that stopped the feed of the relay; `undefined` while it runs. The stream checks again after a while. */
  readonly stop = this.feedStop.failure;
  /** Whether a person has requested a restart. */
  readonly isRestarting = this.feedStop.isRestarting;
  readonly state = this.feedStop.state;
  /** Whether the server can read the payload; `undefined` before its first answer. */
  readonly payload = this.known.asReadonly();
  /**
   * The shortest time from the end of a window to its arrival, in ms: the delay of the stream, plus the difference of the two clocks.
   * 0 before the first window.
   */
  readonly lagMs = computed(() => (Number.isFinite(this.lag()) ? this.lag() : 0));
  /** The last price of each market. */
  readonly prices = this.last.asReadonly();

  constructor() {
    this.holes
      .pipe(
        exhaustMap(() => history$().pipe(catchError(() => EMPTY))),
        takeUntilDestroyed(),
      )
      .subscribe(({ windows }) => this.fill(windows));
  }

  /** Connects again after a stop. */
  restart(): void {
    this.feedStop.restart();
  }

  /** Loads the history, then opens the stream. Stores the values, and emits the events of the connection. */
  private get events$() {
    return history$().pipe(
      retry({ delay: retryAfterMs }),
      tap((history) => this.begin(history)),
      switchMap(({ payload }) => (payload === 'unknown' ? NEVER : marketStream$())),
      tap((event) => {
        if (event.type === 'value') this.take(event.value);
        else this.feedStop.follow(event);
      }),
      filter((event) => event.type !== 'value'),
    );
  }

  private begin({ payload, candleMs, storedMs, windows }: MarketsHistory): void {
    this.store ??= new CandleStore(candleMs, storedMs);
    this.fill(windows);
    this.known.set(payload);
  }

  private fill(windows: readonly CandleWindow[]): void {
    for (const window of windows) this.store?.add(window);
    this.steps.update((step) => step + 1);
  }

  private take(value: MarketValue): void {
    if (value.kind === 'price') {
      this.last.update((prices) => new Map(prices).set(value.symbol, value));
      return;
    }
    this.fill([value]);
    // A window is missing or partial: the stream has just started, or the tab was asleep. The server has it.
    const isPartial = !value.complete && value.gaps.length === 0;
    if (isPartial || this.store?.hasBefore(value.start) === false) this.holes.next();
    const lag = Date.now() - value.end;
    // A delayed window doesn't change the clocks.
    this.lag.update((known) => Math.min(known, lag));
  }
}

/** Loads the candles of the last minutes. */
const history$ = () =>
  defer(async () => {
    const response = await fetch('/markets/history');
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return (await response.json()) as MarketsHistory;
  });

/** Creates a second feed, separate from the one of the page. It closes with the view. */
const ownFeed = (open: () => Observable<RelayedEvent>): AngularTradeFeed => {
  const injector = createEnvironmentInjector([provideTradeFeedFrom(defer(open))], inject(EnvironmentInjector));
  inject(DestroyRef).onDestroy(() => injector.destroy());
  return runInInjectionContext(injector, injectTradeFeed);
};
