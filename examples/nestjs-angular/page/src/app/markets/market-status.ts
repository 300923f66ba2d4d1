import { LiveAnnouncer } from '@angular/cdk/a11y';
import { ChangeDetectionStrategy, Component, computed, effect, inject, untracked } from '@angular/core';
import { Title } from '@angular/platform-browser';
import { colour } from '../charts/drawing';
import { Clock } from '../feed/clock';
import { Theme } from '../shell/theme';
import { setIcon } from '../status/status-panel';
import { announcement, statusWords, titles } from '../status/status-words';
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
        <button type="button" class="primary" (click)="feed.restart()">Connect again</button>
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
      isAsked: this.feed.isAsked(),
      lastOutage: '',
      now: this.clock.now(),
    }),
  );

  constructor() {
    const announcer = inject(LiveAnnouncer);
    const title = inject(Title);
    const theme = inject(Theme);
    const said = computed(() => announcement({ status: this.feed.status(), stop: this.feed.stop() }));
    effect(() => {
      const words = said();
      untracked(() => void announcer.announce(words, 'polite'));
    });
    effect(() => {
      theme.isDark();
      const state = this.state();
      title.setTitle(`${titles[state]} · Markets`);
      setIcon(colour(state === 'live' ? '--accent' : state === 'stopped' ? '--stop' : '--warn'));
    });
  }
}
