import { ChangeDetectionStrategy, Component, computed, inject } from '@angular/core';
import { Clock } from '../feed/clock';
import { Monitor } from '../feed/monitor';
import { bytesParts, count, duration, moment, seconds } from '../feed/words';

/** Shows the totals since the start of the server. */
@Component({
  selector: 'app-totals',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <h2 id="totals-title">Totals since {{ since() }}</h2>
    <dl>
      @for (total of totals(); track total.name) {
        <div [class.bad]="total.isBad">
          <dt>{{ total.name }}</dt>
          <dd>
            {{ total.value }}
            @if (total.unit) {
              <span class="unit">{{ total.unit }}</span>
            }
            @if (total.note) {
              <span class="note">{{ total.note }}</span>
            }
          </dd>
        </div>
      }
    </dl>
  `,
  styleUrl: './totals.css',
})
export class Totals {
  private readonly monitor = inject(Monitor);
  private readonly clock = inject(Clock);

  private readonly second = computed(() => Math.floor(this.clock.now() / 1_000) * 1_000);

  protected readonly since = computed(() => moment(this.monitor.totals().since, this.second()));
  protected readonly totals = computed((): readonly Total[] => {
    const { frames, bytes: amount, gaps, lostMs, downSince, dropped, reconnects } = this.monitor.totals();
    const [figure, unit] = bytesParts(amount);
    // The current outage counts up to now, in whole seconds like the status.
    const isDown = downSince !== undefined;
    const lost = lostMs + (isDown ? Math.max(0, this.clock.now() - downSince) : 0);
    const all = gaps + (isDown ? 1 : 0);
    const causes = Object.entries(reconnects);
    return [
      { name: 'Frames', value: count(frames) },
      { name: 'Bytes', value: figure, unit },
      { name: 'Gaps', value: count(all), isBad: all > 0 },
      { name: 'Lost time', value: isDown || lost === 0 ? seconds(lost) : duration(lost), isBad: lost > 0 },
      {
        name: 'Dropped frames',
        value: count(dropped),
        note: `on this page, since ${moment(this.monitor.loadedAt, this.second())}`,
        isBad: dropped > 0,
      },
      {
        name: 'Reconnect attempts',
        value: count(causes.reduce((sum, [, times]) => sum + times, 0)),
        note: causes.map(([code, times]) => `${count(times)} × ${code.replaceAll('-', ' ')}`).join(', '),
      },
    ];
  });
}

interface Total {
  readonly name: string;
  readonly value: string;
  readonly unit?: string;
  readonly note?: string;
  readonly isBad?: boolean;
}
