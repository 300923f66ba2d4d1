import { ChangeDetectionStrategy, Component, computed, effect, inject, signal } from '@angular/core';
import type { Figure } from './charts/figure';
import { figuresOf } from './charts/figures';
import { RateChart } from './charts/rate-chart';
import { Monitor } from './feed/monitor';
import { FramesPanel } from './frames/frames-panel';
import { EventLog } from './log/event-log';
import { TryAnOutage } from './outage/try-an-outage';
import { remember, remembered } from './shell/remembered';
import { Shortcuts } from './shell/shortcuts';
import { ShortcutsDialog } from './shell/shortcuts-dialog';
import { Sound } from './shell/sound';
import { Theme } from './shell/theme';
import { StatusPanel } from './status/status-panel';
import { Totals } from './totals/totals';

/** The page: how it stands, the figures, the frames, what happened. */
@Component({
  selector: 'app-root',
  changeDetection: ChangeDetectionStrategy.OnPush,
  imports: [EventLog, FramesPanel, RateChart, ShortcutsDialog, StatusPanel, Totals, TryAnOutage],
  templateUrl: './app.html',
  styleUrl: './app.css',
})
export class App {
  private readonly monitor = inject(Monitor);

  protected readonly theme = inject(Theme);
  protected readonly sound = inject(Sound);
  protected readonly feed = this.monitor.name;
  protected readonly figures: readonly Figure[] = figuresOf(this.monitor);
  protected readonly spans = [1, 5, 15] as const;
  protected readonly minutes = signal<number>(this.spans.find((span) => String(span) === remembered('minutes')) ?? 5);
  protected readonly themeWords = computed(
    () => ({ system: 'System', light: 'Light', dark: 'Dark' })[this.theme.choice()],
  );
  protected readonly soundWords = computed(() => {
    if (this.sound.isBlocked()) return 'A sound when the feed stops: after a click on this page';
    return `A sound when the feed stops or reconnects: ${this.sound.isOn() ? 'on' : 'off'}`;
  });

  constructor() {
    effect(() => remember('minutes', String(this.minutes())));
    inject(Shortcuts).bind('t', () => this.theme.next());
  }
}
