import { ChangeDetectionStrategy, Component, computed, inject } from '@angular/core';
import type { Figure } from './charts/figure';
import { figuresOf } from './charts/figures';
import { RateChart } from './charts/rate-chart';
import { Monitor } from './feed/monitor';
import { FramesPanel } from './frames/frames-panel';
import { EventLog } from './log/event-log';
import { TryAnOutage } from './outage/try-an-outage';
import { MinutesChoice, storedMinutes } from './shell/minutes-choice';
import { Sound } from './shell/sound';
import { TopBar } from './shell/top-bar';
import { StatusPanel } from './status/status-panel';
import { Totals } from './totals/totals';

/** The view of the feed: its status, the figures, the frames and the log. */
@Component({
  selector: 'app-feed',
  changeDetection: ChangeDetectionStrategy.OnPush,
  imports: [EventLog, FramesPanel, MinutesChoice, RateChart, StatusPanel, TopBar, Totals, TryAnOutage],
  templateUrl: './app.html',
  styleUrl: './app.css',
})
export class App {
  private readonly monitor = inject(Monitor);

  protected readonly sound = inject(Sound);
  protected readonly figures: readonly Figure[] = figuresOf(this.monitor);
  protected readonly minutes = storedMinutes('minutes', 5);
  protected readonly soundWords = computed(() => {
    if (this.sound.isBlocked()) return 'Click on this page to allow the sound';
    return `Sound when the feed stops or reconnects: ${this.sound.isOn() ? 'on' : 'off'}`;
  });
}
