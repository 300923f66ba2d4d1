import {
  afterNextRender,
  ChangeDetectionStrategy,
  Component,
  computed,
  DestroyRef,
  effect,
  ElementRef,
  inject,
  input,
  signal,
  untracked,
  viewChild,
} from '@angular/core';
import uPlot from 'uplot';
import { Clock } from '../feed/clock';
import type { Outage } from '../feed/history';
import { count, time } from '../feed/words';
import { Theme } from '../shell/theme';
import { candleOptions, columnsOf } from './candle-options';
import type { CandleRow } from './candle-store';
import { amountWords, completeness, priceWords, spokenCandle } from './market-words';

/** The contents of a candle chart. */
export interface CandleView {
  readonly symbol: string;
  readonly rows: readonly CandleRow[];
  readonly outages: readonly Outage[];
  /** The visible range, in epoch ms. */
  readonly from: number;
  readonly to: number;
}

/** Draws the candles and the volume of a market, with outages shaded. */
@Component({
  selector: 'app-candle-chart',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <dl class="readout">
      @if (readout(); as readout) {
        <div>
          <dt class="visually-hidden">From</dt>
          <dd>{{ readout.time }}</dd>
        </div>
        @for (figure of readout.figures; track figure.name) {
          <div [class.trades]="figure.name === 'Trades'">
            <dt>{{ figure.name }}</dt>
            <dd>{{ figure.value }}</dd>
          </div>
        }
        @if (!readout.isComplete) {
          <div>
            <dt class="visually-hidden">Completeness</dt>
            <dd class="incomplete">{{ readout.completeness }}</dd>
          </div>
        }
      }
    </dl>
    <div
      #plot
      class="plot"
      tabindex="0"
      role="slider"
      aria-orientation="horizontal"
      [attr.aria-label]="view().symbol + ': the last ' + minutes() + ' min, candle by candle'"
      [attr.aria-valuemin]="0"
      [attr.aria-valuemax]="last()"
      [attr.aria-valuenow]="index() ?? last()"
      [attr.aria-valuetext]="spoken()"
      [attr.data-from]="view().from"
      [attr.data-to]="view().to"
      (keydown)="move($event)"
      (blur)="leave()"
    ></div>
  `,
  styleUrl: './candle-chart.css',
})
export class CandleChart {
  readonly view = input.required<CandleView>();
  readonly minutes = input.required<number>();
  /** The last price; `undefined` while the feed is not live, because it would look current. */
  readonly price = input.required<number | undefined>();

  private readonly theme = inject(Theme);
  private readonly clock = inject(Clock);
  private readonly destroyRef = inject(DestroyRef);
  private readonly plot = viewChild.required<ElementRef<HTMLElement>>('plot');
  private readonly pointedAt = signal<number | undefined>(undefined);
  private chart: uPlot | undefined;

  /** The index of the candle at the crosshair. */
  protected readonly index = this.pointedAt.asReadonly();
  /** The candle at the crosshair, or the newest one. */
  private readonly row = computed(() => this.view().rows[this.pointedAt() ?? this.last()]);
  protected readonly readout = computed(() => {
    const row = this.row();
    return (
      row && {
        time: time(row.start),
        isComplete: row.complete,
        completeness: completeness(row),
        figures: [
          { name: 'Open', value: priceWords(row.open) },
          { name: 'High', value: priceWords(row.high) },
          { name: 'Low', value: priceWords(row.low) },
          { name: 'Close', value: priceWords(row.close) },
          { name: 'Volume', value: amountWords(row.volume) },
          { name: 'Trades', value: count(row.trades) },
        ],
      }
    );
  });
  protected readonly last = computed(() => Math.max(0, this.view().rows.length - 1));
  protected readonly spoken = computed(() => {
    const row = this.row();
    return row === undefined ? 'no candle yet' : spokenCandle(row);
  });

  constructor() {
    afterNextRender(() => this.draw());
    effect(() => {
      const { rows } = this.view();
      untracked(() => this.chart?.setData(columnsOf(rows)));
    });
    effect(() => {
      this.price();
      this.theme.isDark();
      // The band of a current outage grows with time.
      this.clock.now();
      this.chart?.redraw(false);
    });
    this.destroyRef.onDestroy(() => this.chart?.destroy());
  }

  protected move(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    const { chart } = this;
    if (step === undefined || chart === undefined) return;
    event.preventDefault();
    const at = chart.data[0][Math.min(this.last(), Math.max(0, (this.index() ?? this.last()) + step))];
    if (at !== undefined) chart.setCursor({ left: chart.valToPos(at, 'x'), top: 1 });
  }

  protected leave(): void {
    this.chart?.setCursor({ left: -10, top: -10 });
  }

  private draw(): void {
    const element = this.plot().nativeElement;
    const options = candleOptions({
      rows: () => this.view().rows,
      outages: () => this.view().outages,
      range: () => [this.view().from, this.view().to],
      price: () => this.price(),
      onPoint: (index) => this.pointedAt.set(index),
    });
    const size = () => ({ width: Math.max(1, element.clientWidth), height: Math.max(1, element.clientHeight) });
    this.chart = new uPlot({ ...options, ...size() }, columnsOf(this.view().rows), element);
    // Screen readers use the slider, not the drawing.
    this.chart.root.setAttribute('aria-hidden', 'true');
    const resizes = new ResizeObserver(() => this.chart?.setSize(size()));
    resizes.observe(element);
    this.destroyRef.onDestroy(() => resizes.disconnect());
  }
}
