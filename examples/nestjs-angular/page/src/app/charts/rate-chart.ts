import {
  afterNextRender,
  ChangeDetectionStrategy,
  Component,
  computed,
  effect,
  type ElementRef,
  inject,
  input,
  signal,
  untracked,
  viewChild,
} from '@angular/core';
import type uPlot from 'uplot';
import { Clock } from '../feed/clock';
import { Monitor } from '../feed/monitor';
import { count, time } from '../feed/words';
import { chartOptions } from './chart-options';
import type { Cut } from './drawing';
import type { Figure } from './figure';
import { Plot } from './plot';

/** Shows a figure: its current value, and the last minutes as a line with shaded outages. */
@Component({
  selector: 'app-rate-chart',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <header>
      <h3>{{ figure().title }}</h3>
      @if (figure().help; as help) {
        <span class="help">
          <button
            type="button"
            class="help-button"
            [attr.aria-label]="'What ' + figure().title.toLowerCase() + ' measures'"
            [attr.aria-describedby]="figure().id + '-help'"
          >
            ?
          </button>
          <span role="tooltip" class="tooltip" [id]="figure().id + '-help'">{{ help }}</span>
        </span>
      }
      <p class="when" [class.shown]="pointed() !== undefined">{{ pointedTime() }}</p>
    </header>
    <dl>
      @for (line of lines(); track line.label) {
        <div [class.minor]="!$first" [hidden]="line.isHidden">
          <dt [class.visually-hidden]="figure().lines.length === 1">
            <i [class]="'key ' + line.tone"></i>{{ line.label }}
          </dt>
          <dd>
            <span class="figure">{{ line.value[0] }}</span> <span class="unit">{{ line.value[1] }}</span>
          </dd>
        </div>
      }
    </dl>
    <div class="area">
      <div
        #area
        class="plot"
        tabindex="0"
        role="slider"
        [attr.aria-label]="figure().title + ': the last ' + minutes() + ' min, point by point'"
        aria-orientation="horizontal"
        [attr.aria-valuemin]="0"
        [attr.aria-valuemax]="last()"
        [attr.aria-valuenow]="pointed() ?? last()"
        [attr.aria-valuetext]="spoken()"
        (keydown)="plot.press($event)"
        (blur)="plot.leave()"
      ></div>
      @if (cut(); as cut) {
        <p class="cut">{{ cut }}</p>
      }
    </div>
  `,
  styleUrl: './rate-chart.css',
})
export class RateChart {
  readonly figure = input.required<Figure>();
  readonly minutes = input.required<number>();

  private readonly monitor = inject(Monitor);
  private readonly clock = inject(Clock);
  private readonly area = viewChild.required<ElementRef<HTMLElement>>('area');
  private readonly data = signal<uPlot.AlignedData>([[]]);
  private readonly cutOff = signal<Cut>({ points: 0, most: 0 }, { equal: isSameCut });

  protected readonly plot = new Plot(30);
  /** The index of the point at the crosshair. */
  protected readonly pointed = this.plot.index;
  protected readonly last = computed(() => Math.max(0, this.data()[0].length - 1));
  protected readonly pointedTime = computed(() => {
    const at = this.data()[0][this.pointed() ?? -1];
    return at === undefined ? '' : time(at * 1_000);
  });
  protected readonly lines = computed(() => {
    const index = this.pointed();
    const now = this.figure().now();
    return this.figure().lines.map(({ label, tone }, line) => {
      const value = (index === undefined ? now[line] : this.data()[line + 1]?.[index]) ?? undefined;
      return { label, tone, value: this.figure().parts(value), isHidden: tone === 'dashed' && value === undefined };
    });
  });
  /** The text about points above the scale. */
  protected readonly cut = computed(() => {
    const { points, most } = this.cutOff();
    if (points === 0) return undefined;
    const which = points === 1 ? '1 second is' : `${count(points)} seconds are`;
    return `${which} above the scale: up to ${this.figure().parts(most).join(' ').trim()}.`;
  });
  protected readonly spoken = computed(() => {
    const shown = this.lines().filter(({ isHidden }) => !isHidden);
    const values = shown.map(({ label, value }) => `${label} ${value.join(' ').trim()}`);
    return `${this.pointedTime() || 'now'}: ${values.join(', ')}`;
  });

  constructor() {
    afterNextRender(() => this.draw());
    effect(() => {
      this.monitor.sampled();
      this.minutes();
      untracked(() => this.update());
    });
  }

  private draw(): void {
    const options = chartOptions({
      figure: this.figure(),
      outages: () => this.monitor.history.outages,
      span: () => this.minutes() * 60,
      loadedAt: this.monitor.loadedAt,
      onCut: (cut) => this.cutOff.set(cut),
    });
    this.plot.draw(this.area().nativeElement, options, this.data());
    this.update();
  }

  private update(): void {
    const columns = this.monitor.history.columns(this.clock.now() - this.minutes() * 60_000);
    const data: uPlot.AlignedData = [
      columns.times as number[],
      ...this.figure()
        .columns(columns)
        .map((column) => column as number[]),
    ];
    this.data.set(data);
    this.plot.setData(data);
  }
}

const isSameCut = (one: Cut, other: Cut): boolean => one.points === other.points && one.most === other.most;
