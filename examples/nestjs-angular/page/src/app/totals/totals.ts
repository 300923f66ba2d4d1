import { ChangeDetectionStrategy, Component, computed, inject } from '@angular/core';
import { Clock } from '../feed/clock';
import { Monitor } from '../feed/monitor';
import { bytesParts, count, duration, moment } from '../feed/words';

/** What has come and what has been lost since the page was loaded. */
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
            {{ total.value }} <span class="unit">{{ total.unit }}</span>
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

  protected readonly since = computed(() => moment(this.monitor.loadedAt, this.clock.now()));
  protected readonly totals = computed(() => {
    const stats = this.monitor.stats();
    const reconnects = Object.entries(stats?.reconnects ?? {});
    const [bytes, unit] = bytesParts(stats?.totalBytes ?? 0);
    const [lost, lostUnit] = (stats?.lostMs ? duration(stats.lostMs) : '0 s').split(/ (.*)/) as [string, string];
    return [
      { name: 'Frames', value: count(stats?.totalFrames ?? 0) },
      { name: 'Bytes', value: bytes, unit },
      { name: 'Gaps', value: count(stats?.gaps ?? 0), isBad: (stats?.gaps ?? 0) > 0 },
      { name: 'Lost time', value: lost, unit: lostUnit, isBad: (stats?.lostMs ?? 0) > 0 },
      { name: 'Dropped frames', value: count(stats?.dropped ?? 0), isBad: (stats?.dropped ?? 0) > 0 },
      {
        name: 'Reconnect attempts',
        value: count(reconnects.reduce((sum, [, times]) => sum + times, 0)),
        note: reconnects.map(([code, times]) => `${count(times)} × ${code.replaceAll('-', ' ')}`).join(', '),
      },
    ];
  });
}
