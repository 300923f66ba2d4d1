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
import { Monitor } from '../feed/monitor';
import { count, time } from '../feed/words';
import { Theme } from '../shell/theme';
import { chartOptions } from './chart-options';
import type { Cut } from './drawing';
import type { Figure } from './figure';

/** One figure: how it stands, and the last minutes as a line with the outages shaded. */
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
    <div
      #plot
      class="plot"
      tabindex="0"
      role="slider"
      [attr.aria-label]="figure().title + ': the last ' + minutes() + ' min, point by point'"
      aria-orientation="horizontal"
      [attr.aria-valuemin]="0"
      [attr.aria-valuemax]="last()"
      [attr.aria-valuenow]="pointed() ?? last()"
      [attr.aria-valuetext]="spoken()"
      (keydown)="move($event)"
      (blur)="leave()"
    ></div>
    <p class="cut">{{ cut() }}</p>
  `,
  styleUrl: './rate-chart.css',
})
export class RateChart {
  readonly figure = input.required<Figure>();
  readonly minutes = input.required<number>();

  private readonly monitor = inject(Monitor);
  private readonly clock = inject(Clock);
  private readonly theme = inject(Theme);
  private readonly plot = viewChild.required<ElementRef<HTMLElement>>('plot');
  private readonly index = signal<number | undefined>(undefined);
  private readonly data = signal<uPlot.AlignedData>([[]]);
  private readonly cutOff = signal<Cut>({ points: 0, most: 0 }, { equal: isSameCut });
  private chart: uPlot | undefined;

  /** Which point the crosshair is at. */
  protected readonly pointed = this.index.asReadonly();
  protected readonly last = computed(() => Math.max(0, this.data()[0].length - 1));
  protected readonly pointedTime = computed(() => {
    const at = this.data()[0][this.index() ?? -1];
    return at === undefined ? '' : time(at * 1_000);
  });
  protected readonly lines = computed(() => {
    const index = this.index();
    const now = this.figure().now();
    return this.figure().lines.map(({ label, tone }, line) => {
      const value = (index === undefined ? now[line] : this.data()[line + 1]?.[index]) ?? undefined;
      return { label, tone, value: this.figure().parts(value), isHidden: tone === 'dashed' && value === undefined };
    });
  });
  /** Says what is above the scale. */
  protected readonly cut = computed(() => {
    const { points, most } = this.cutOff();
    if (points === 0) return undefined;
    const which = points === 1 ? '1 second is' : `${count(points)} seconds are`;
    return `${which} above the scale: up to ${this.figure().parts(most).join(' ')}.`;
  });
  protected readonly spoken = computed(() => {
    const shown = this.lines().filter(({ isHidden }) => !isHidden);
    const values = shown.map(({ label, value }) => `${label} ${value.join(' ')}`);
    return `${this.pointedTime() || 'now'}: ${values.join(', ')}`;
  });

  constructor() {
    afterNextRender(() => this.draw());
    effect(() => {
      this.monitor.sampled();
      this.minutes();
      untracked(() => this.update());
    });
    effect(() => {
      this.theme.isDark();
      this.chart?.redraw(false);
    });
    inject(DestroyRef).onDestroy(() => this.chart?.destroy());
  }

  protected move(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || this.chart === undefined) return;
    event.preventDefault();
    this.point(Math.min(this.last(), Math.max(0, (this.index() ?? this.last()) + step)));
  }

  protected leave(): void {
    this.chart?.setCursor({ left: -10, top: -10 });
  }

  private point(index: number): void {
    const { chart } = this;
    if (chart === undefined) return;
    const at = chart.data[0][index];
    if (at !== undefined)
      chart.setCursor({ left: chart.valToPos(at, 'x'), top: chart.bbox.height / devicePixelRatio / 2 });
  }

  private draw(): void {
    const element = this.plot().nativeElement;
    const options = chartOptions({
      figure: this.figure(),
      outages: () => this.monitor.history.outages,
      span: () => this.minutes() * 60,
      loadedAt: this.monitor.loadedAt,
      onPoint: (index) => this.index.set(index),
      onCut: (cut) => this.cutOff.set(cut),
    });
    const size = () => ({ width: Math.max(1, element.clientWidth), height: Math.max(1, element.clientHeight) });
    this.chart = new uPlot({ ...options, ...size() }, this.data(), element);
    // What a person moves through with the keyboard is this element, not the drawing.
    this.chart.root.setAttribute('aria-hidden', 'true');
    const resizes = new ResizeObserver(() => this.chart?.setSize(size()));
    resizes.observe(element);
    this.plotted.onDestroy(() => resizes.disconnect());
    this.update();
  }

  private readonly plotted = inject(DestroyRef);

  private update(): void {
    const columns = this.monitor.history.columns(this.clock.now() - this.minutes() * 60_000);
    const data: uPlot.AlignedData = [
      columns.times as number[],
      ...this.figure()
        .columns(columns)
        .map((column) => column as number[]),
    ];
    this.data.set(data);
    this.chart?.setData(data);
  }
}

const isSameCut = (one: Cut, other: Cut): boolean => one.points === other.points && one.most === other.most;
