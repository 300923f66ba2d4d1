import { LiveAnnouncer } from '@angular/cdk/a11y';
import {
  ChangeDetectionStrategy,
  Component,
  computed,
  effect,
  type ElementRef,
  inject,
  untracked,
  viewChild,
} from '@angular/core';
import { Title } from '@angular/platform-browser';
import { Clock } from '../feed/clock';
import { Monitor } from '../feed/monitor';
import { duration, moment } from '../feed/words';
import { colour } from '../charts/drawing';
import { Theme } from '../shell/theme';
import { hopsOf } from './hops';
import { announcement, pageTitle, statusWords } from './status-words';

/** How it stands with the connection: state, reason, what happens next, and on which link. */
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
    if (outage?.until === undefined) return `No outage since ${moment(this.monitor.totals().since, this.clock.now())}.`;
    const lasted = duration(Math.max(0, outage.until - outage.at));
    return `Last outage at ${moment(outage.at, this.clock.now())}, for ${lasted}: ${outage.title}`;
  });
  private readonly failure = computed(() => {
    const status = this.monitor.status();
    return 'failure' in status ? (this.monitor.stop() ?? status.failure) : undefined;
  });

  protected readonly state = this.monitor.state;
  protected readonly isAsked = this.monitor.isAsked;
  protected readonly words = computed(() =>
    statusWords({
      status: this.monitor.status(),
      stop: this.monitor.stop(),
      isAsked: this.isAsked(),
      lastOutage: this.lastOutage(),
      now: this.clock.now(),
    }),
  );
  protected readonly hops = computed(() => hopsOf(this.state(), this.failure()));

  constructor() {
    const announcer = inject(LiveAnnouncer);
    const title = inject(Title);
    const theme = inject(Theme);
    const said = computed(() => announcement({ status: this.monitor.status(), stop: this.monitor.stop() }));
    effect(() => {
      const words = said();
      untracked(() => void announcer.announce(words, 'polite'));
    });
    effect(() => {
      theme.isDark();
      const state = this.state();
      setIcon(colour(state === 'live' ? '--accent' : state === 'stopped' ? '--stop' : '--warn'));
    });
    effect(() => title.setTitle(pageTitle(this.state(), this.monitor.rates()?.framesPerSecond, this.failure())));
  }

  protected restart(): void {
    // The button goes, and the focus must not go with it.
    this.heading().nativeElement.focus();
    this.monitor.restart();
  }
}

/** A dot in the colour of the state: what one sees of a tab in the background. */
export const setIcon = (fill: string): void => {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6" fill="${fill}"/></svg>`;
  document.querySelector('link[rel=icon]')?.setAttribute('href', `data:image/svg+xml,${encodeURIComponent(svg)}`);
};
