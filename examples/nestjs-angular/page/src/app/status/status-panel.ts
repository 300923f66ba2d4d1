import { ChangeDetectionStrategy, Component, computed, type ElementRef, inject, viewChild } from '@angular/core';
import { Clock } from '../feed/clock';
import { Monitor } from '../feed/monitor';
import { duration, moment } from '../feed/words';
import { hopsOf } from './hops';
import { pageTitle, statusWords } from './status-words';
import { showInTab } from './tab-status';

/** Shows the status of the connection: the state, the reason, the next step, and the affected link. */
@Component({
  selector: 'app-status-panel',
  changeDetection: ChangeDetectionStrategy.OnPush,
  templateUrl: './status-panel.html',
  styleUrl: './status-panel.css',
  host: { '[class]': 'state()' },
})
export class StatusPanel {
  private readonly monitor = inject(Monitor);
  private readonly clock = inject(Clock);
  private readonly heading = viewChild.required<ElementRef<HTMLElement>>('heading');
  private readonly lastOutage = computed(() => {
    const outage = this.monitor
      .entries()
      .find(({ kind, until }) => (kind === 'outage' || kind === 'stop') && until !== undefined);
    if (outage?.until === undefined) return `No outage since ${moment(this.monitor.entriesSince(), this.clock.now())}.`;
    const lasted = duration(Math.max(0, outage.until - outage.at));
    return `Last outage at ${moment(outage.at, this.clock.now())}, for ${lasted}: ${outage.title}`;
  });
  private readonly failure = computed(() => {
    const status = this.monitor.status();
    return 'failure' in status ? (this.monitor.stop() ?? status.failure) : undefined;
  });

  protected readonly feed = this.monitor.name;
  protected readonly state = this.monitor.state;
  protected readonly isRestarting = this.monitor.isRestarting;
  protected readonly words = computed(() =>
    statusWords({
      status: this.monitor.status(),
      freshness: this.monitor.freshness(),
      stop: this.monitor.stop(),
      isRestarting: this.isRestarting(),
      lastOutage: this.lastOutage(),
      now: this.clock.now(),
    }),
  );
  protected readonly hops = computed(() => hopsOf(this.state(), this.failure()));

  constructor() {
    const { status, stop, state, rates } = this.monitor;
    const title = () => pageTitle(state(), rates()?.framesPerSecond, this.failure());
    showInTab({ status, stop, state, title });
  }

  protected restart(): void {
    // The button disappears, so move the focus.
    this.heading().nativeElement.focus();
    this.monitor.restart();
  }
}
