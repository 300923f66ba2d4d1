import { ChangeDetectionStrategy, Component, computed, effect, inject, signal } from '@angular/core';
import type { Figure } from './charts/figure';
import { figuresOf } from './charts/figures';
import { RateChart } from './charts/rate-chart';
import { Monitor } from './feed/monitor';
import { FramesPanel } from './frames/frames-panel';
import { EventLog } from './log/event-log';
import { TryAnOutage } from './outage/try-an-outage';
import { remember, remembered } from './shell/remembered';
import { Sound } from './shell/sound';
import { TopBar } from './shell/top-bar';
import { StatusPanel } from './status/status-panel';
import { Totals } from './totals/totals';

/** The view of the feed: how it stands, the figures, the frames, what happened. */
@Component({
  selector: 'app-feed',
  changeDetection: ChangeDetectionStrategy.OnPush,
  imports: [EventLog, FramesPanel, RateChart, StatusPanel, TopBar, Totals, TryAnOutage],
  templateUrl: './app.html',
  styleUrl: './app.css',
})
export class App {
  private readonly monitor = inject(Monitor);

  protected readonly sound = inject(Sound);
  protected readonly feed = this.monitor.name;
  protected readonly figures: readonly Figure[] = figuresOf(this.monitor);
  protected readonly spans = [1, 5, 15] as const;
  protected readonly minutes = signal<number>(this.spans.find((span) => String(span) === remembered('minutes')) ?? 5);
  protected readonly soundWords = computed(() => {
    if (this.sound.isBlocked()) return 'A sound when the feed stops: after a click on this page';
    return `A sound when the feed stops or reconnects: ${this.sound.isOn() ? 'on' : 'off'}`;
  });

  constructor() {
    effect(() => remember('minutes', String(this.minutes())));
  }
}
