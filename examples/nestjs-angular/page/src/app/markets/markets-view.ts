import {
  afterNextRender,
  ChangeDetectionStrategy,
  Component,
  computed,
  type ElementRef,
  inject,
  signal,
  viewChild,
} from '@angular/core';
import { Clock } from '../feed/clock';
import { time } from '../feed/words';
import { TryAnOutage } from '../outage/try-an-outage';
import { MinutesChoice, storedMinutes } from '../shell/minutes-choice';
import { remember, remembered } from '../shell/remembered';
import { TopBar } from '../shell/top-bar';
import { Views } from '../shell/views';
import { CandleChart, type CandleView } from './candle-chart';
import { CandleTable } from './candle-table';
import { MarketFeed } from './market-feed';
import { MarketList, type MarketRow } from './market-list';
import { MarketStatus } from './market-status';
import { type Change, changeOf, priceWords } from './market-words';
import { sparkline } from './sparkline';
import { UnknownPayload } from './unknown-payload';

/** The number of candles in a chart; half as many on a phone, where they would be too narrow. */
const candlesShown = 60;

/** Shows all markets as a list, and one of them as a large chart. */
@Component({
  selector: 'app-markets-view',
  changeDetection: ChangeDetectionStrategy.OnPush,
  imports: [CandleChart, CandleTable, MarketList, MarketStatus, MinutesChoice, TopBar, TryAnOutage, UnknownPayload],
  providers: [MarketFeed],
  templateUrl: './markets-view.html',
  styleUrl: './markets-view.css',
})
export class MarketsView {
  private readonly feed = inject(MarketFeed);
  private readonly clock = inject(Clock);
  private readonly heading = viewChild.required<ElementRef<HTMLElement>>('heading');
  private readonly picked = signal(remembered('market'));
  private readonly narrow = matchMedia('(max-width: 560px)');

  protected readonly minutes = storedMinutes('markets-minutes', 1);
  protected readonly payload = this.feed.payload;
  protected readonly isLive = computed(() => this.feed.state() === 'live');

  /** The length of a candle in ms. */
  private readonly lengthMs = computed(
    () => (this.minutes() * 60_000) / (this.narrow.matches ? candlesShown / 2 : candlesShown),
  );
  private readonly to = computed(() => {
    const now = Math.max(this.clock.now() - this.feed.lagMs(), this.store()?.end ?? 0);
    return Math.ceil(now / this.lengthMs()) * this.lengthMs();
  });
  private readonly range = computed(() => [this.to() - this.minutes() * 60_000, this.to()] as const);
  private readonly store = computed(
    () => {
      this.feed.step();
      return this.feed.store;
    },
    { equal: () => false },
  );
  private readonly outages = computed(() => this.store()?.outages ?? []);
  private readonly rowsOf = computed(() => {
    const store = this.store();
    const [from] = this.range();
    return new Map(store?.symbols.map((symbol) => [symbol, store.rows(symbol, this.lengthMs(), from)]));
  });

  protected readonly chosen = computed(() => {
    const symbols = [...this.rowsOf().keys()];
    const picked = this.picked();
    return picked !== undefined && symbols.includes(picked)
      ? picked
      : symbols.find((each) => each === busiest(this.rowsOf()));
  });
  protected readonly view = computed<CandleView | undefined>(() => {
    const symbol = this.chosen();
    const [from, to] = this.range();
    return symbol === undefined
      ? undefined
      : { symbol, rows: this.rowsOf().get(symbol) ?? [], outages: this.outages(), from, to };
  });
  protected readonly markets = computed<readonly MarketRow[]>(() =>
    [...this.rowsOf()].map(([symbol, rows]) => ({
      symbol,
      price: this.priceWordsOf(symbol),
      change: this.changeOf(symbol),
      ...sparkline(rows, this.outages(), this.range()),
    })),
  );
  protected readonly large = computed(() => {
    const symbol = this.chosen();
    return symbol === undefined
      ? undefined
      : { symbol, price: this.priceWordsOf(symbol), change: this.changeOf(symbol) };
  });
  protected readonly livePrice = computed(() => (this.isLive() ? this.priceOf(this.chosen() ?? '') : undefined));
  /** The start of the time that the change covers. */
  protected readonly since = computed(() => {
    const first = this.view()?.rows[0];
    return first && `since ${time(first.start)}`;
  });
  protected readonly candleWords = computed(() => `Candles of ${this.lengthMs() / 1_000} s`);

  constructor() {
    const views = inject(Views);
    afterNextRender(() => {
      if (views.isMoved()) this.heading().nativeElement.focus();
    });
  }

  protected choose(symbol: string): void {
    this.picked.set(symbol);
    remember('market', symbol);
  }

  private priceOf(symbol: string): number | undefined {
    return this.feed.prices().get(symbol)?.price ?? this.rowsOf().get(symbol)?.at(-1)?.close;
  }

  private priceWordsOf(symbol: string): string {
    const price = this.priceOf(symbol);
    return price === undefined ? '–' : priceWords(price);
  }

  private changeOf(symbol: string): Change | undefined {
    const [first, price] = [this.rowsOf().get(symbol)?.[0], this.priceOf(symbol)];
    return first === undefined || price === undefined ? undefined : changeOf(first.open, price);
  }
}

const busiest = (rows: ReadonlyMap<string, readonly { readonly trades: number }[]>): string | undefined =>
  [...rows]
    .map(([symbol, candles]) => ({ symbol, trades: candles.reduce((sum, { trades }) => sum + trades, 0) }))
    .sort((one, other) => other.trades - one.trades)[0]?.symbol;
