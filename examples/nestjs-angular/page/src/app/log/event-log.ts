import { ChangeDetectionStrategy, Component, computed, inject } from '@angular/core';
import { Clock } from '../feed/clock';
import type { LogEntry } from '../feed/feed-log';
import { Monitor } from '../feed/monitor';
import { duration, moment, seconds } from '../feed/words';

/** Shows the log, newest first. An outage is one entry. */
@Component({
  selector: 'app-event-log',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <h2 id="log-title">What happened since {{ since() }}</h2>
    @if (entries().length === 0) {
      <p class="empty">Nothing yet: the page is connecting.</p>
    }
    <ol tabindex="0" aria-labelledby="log-title">
      @for (entry of entries(); track entry.id) {
        <li [class]="entry.kind">
          <time [attr.datetime]="iso(entry)">{{ when(entry) }}</time>
          <p class="title">
            {{ entry.kind === 'stop' ? 'Stopped. ' + entry.title : entry.title }}
            @if (entry.observed; as observed) {
              <span class="code">{{ observed }}</span>
            }
          </p>
          @if (lasted(entry); as lasted) {
            <p class="lasted">{{ lasted }}</p>
          }
          @for (detail of entry.details; track $index) {
            <p class="detail">{{ detail }}</p>
          }
        </li>
      }
    </ol>
  `,
  styleUrl: './event-log.css',
})
export class EventLog {
  private readonly monitor = inject(Monitor);
  private readonly clock = inject(Clock);

  protected readonly entries = this.monitor.entries;
  protected readonly since = computed(() => moment(this.monitor.entriesSince(), this.clock.now()));

  protected iso({ at }: LogEntry): string {
    return new Date(at).toISOString();
  }

  protected when({ at }: LogEntry): string {
    return moment(at, this.clock.now());
  }

  protected lasted({ kind, at, until }: LogEntry): string | undefined {
    if (kind !== 'outage' && kind !== 'stop') return undefined;
    return until === undefined
      ? `Ongoing for ${seconds(this.clock.now() - at)}.`
      : `Lasted ${duration(Math.max(0, until - at))}.`;
  }
}
