import { ChangeDetectionStrategy, Component, computed, inject } from '@angular/core';
import { Clock } from '../feed/clock';
import { statusWords, titles } from '../status/status-words';
import { showInTab } from '../status/tab-status';
import { MarketFeed } from './market-feed';

/** Shows the status of the connection in one line. */
@Component({
  selector: 'app-market-status',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <p>
      <span class="dot" aria-hidden="true"></span>
      <strong>{{ words().title }}</strong>
      @if (words().reason; as reason) {
        <span class="reason">{{ reason }}</span>
      }
      <span class="next">{{ words().next }}</span>
      @if (state() === 'stopped') {
        <span class="again">
          <button type="button" class="primary" (click)="feed.restart()">Connect again</button>
          <span>{{ words().check }}</span>
        </span>
      }
    </p>
  `,
  styleUrl: './market-status.css',
  host: { '[class]': 'state()' },
})
export class MarketStatus {
  protected readonly feed = inject(MarketFeed);
  private readonly clock = inject(Clock);

  protected readonly state = this.feed.state;
  protected readonly words = computed(() =>
    statusWords({
      status: this.feed.status(),
      stop: this.feed.stop(),
      isRestarting: this.feed.isRestarting(),
      lastOutage: '',
      now: this.clock.now(),
    }),
  );

  constructor() {
    const { status, stop, state } = this.feed;
    showInTab({ status, stop, state, title: () => `${titles[state()]} · Markets` });
  }
}
