import {
  afterNextRender,
  ChangeDetectionStrategy,
  Component,
  computed,
  effect,
  type ElementRef,
  inject,
  input,
  untracked,
  viewChild,
} from '@angular/core';
import { Plot } from '../charts/plot';
import { Clock } from '../feed/clock';
import type { Outage } from '../feed/history';
import { count, time } from '../feed/words';
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
      #area
      class="plot"
      tabindex="0"
      role="slider"
      aria-orientation="horizontal"
      [attr.aria-label]="view().symbol + ': the last ' + minutes() + ' min, candle by candle'"
      [attr.aria-valuemin]="0"
      [attr.aria-valuemax]="last()"
      [attr.aria-valuenow]="plot.index() ?? last()"
      [attr.aria-valuetext]="spoken()"
      [attr.data-from]="view().from"
      [attr.data-to]="view().to"
      (keydown)="plot.press($event)"
      (blur)="plot.leave()"
    ></div>
  `,
  styleUrl: './candle-chart.css',
})
export class CandleChart {
  readonly view = input.required<CandleView>();
  readonly minutes = input.required<number>();
  /** The last price; `undefined` while the feed isn't live, because it would look current. */
  readonly price = input.required<number | undefined>();

  private readonly clock = inject(Clock);
  private readonly area = viewChild.required<ElementRef<HTMLElement>>('area');

  protected readonly plot = new Plot(10);
  /** The candle at the crosshair, or the newest one. */
  private readonly row = computed(() => this.view().rows[this.plot.index() ?? this.last()]);
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
      untracked(() => this.plot.setData(columnsOf(rows)));
    });
    effect(() => {
      this.price();
      // The band of a current outage grows with time.
      this.clock.now();
      this.plot.redraw(true);
    });
  }

  private draw(): void {
    const options = candleOptions({
      rows: () => this.view().rows,
      outages: () => this.view().outages,
      range: () => [this.view().from, this.view().to],
      price: () => this.price(),
    });
    this.plot.draw(this.area().nativeElement, options, columnsOf(this.view().rows));
  }
}
