import { DestroyRef, effect, inject, signal } from '@angular/core';
import uPlot from 'uplot';
import { Theme } from '../shell/theme';

/**
 * A chart in an element. It has the size of the element and the colours of the theme, and the keyboard can move its crosshair.
 *
 * Create it in an injection context. It is destroyed with its component.
 */
export class Plot {
  private readonly destroyRef = inject(DestroyRef);
  private readonly pointed = signal<number | undefined>(undefined);
  private readonly pageStep: number;
  private chart: uPlot | undefined;

  /** The index of the point at the crosshair; `undefined` without a crosshair. */
  readonly index = this.pointed.asReadonly();

  /** @param pageStep - how many points the keys PageUp and PageDown move */
  constructor(pageStep: number) {
    this.pageStep = pageStep;
    const theme = inject(Theme);
    effect(() => {
      theme.isDark();
      this.redraw();
    });
  }

  /** Draws the chart in an element. */
  draw(element: HTMLElement, options: Omit<uPlot.Options, 'width' | 'height'>, data: uPlot.AlignedData): void {
    const size = () => ({ width: Math.max(1, element.clientWidth), height: Math.max(1, element.clientHeight) });
    const setCursor = [({ cursor }: uPlot) => this.pointed.set(cursor.idx ?? undefined)];
    const chart = new uPlot({ ...options, ...size(), hooks: { ...options.hooks, setCursor } }, data, element);
    this.chart = chart;
    // Screen readers use the slider, not the drawing.
    chart.root.setAttribute('aria-hidden', 'true');
    const resizes = new ResizeObserver(() => chart.setSize(size()));
    resizes.observe(element);
    this.destroyRef.onDestroy(() => {
      resizes.disconnect();
      chart.destroy();
    });
  }

  setData(data: uPlot.AlignedData): void {
    this.chart?.setData(data);
  }

  /** Draws the same data again. With `rescale` it computes the scales and the labels of the axes too. */
  redraw(rescale = false): void {
    this.chart?.redraw(rescale, rescale);
  }

  /** Moves the crosshair with the arrow keys, PageUp, PageDown, Home and End. It starts at the newest point. */
  press(event: KeyboardEvent): void {
    const { pageStep, chart } = this;
    const steps: Readonly<Record<string, number | undefined>> = {
      ...{ ArrowLeft: -1, ArrowRight: 1, PageUp: -pageStep, PageDown: pageStep },
      ...{ Home: -Infinity, End: Infinity },
    };
    const step = steps[event.key];
    if (step === undefined || chart === undefined) return;
    event.preventDefault();
    const [times] = chart.data;
    const last = Math.max(0, times.length - 1);
    const at = times[Math.min(last, Math.max(0, (this.index() ?? last) + step))];
    if (at !== undefined)
      chart.setCursor({ left: chart.valToPos(at, 'x'), top: chart.bbox.height / devicePixelRatio / 2 });
  }

  /** Removes the crosshair. */
  leave(): void {
    this.chart?.setCursor({ left: -10, top: -10 });
  }
}
