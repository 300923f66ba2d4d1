import { LiveAnnouncer } from '@angular/cdk/a11y';
import { computed, effect, inject, untracked } from '@angular/core';
import { Title } from '@angular/platform-browser';
import { colour } from '../charts/drawing';
import type { FeedState } from '../feed/feed-stop';
import { Theme } from '../shell/theme';
import { announcement, type StatusFacts } from './status-words';

/** The status that a view shows in its tab. */
export interface TabStatus extends Pick<
  { readonly [Name in keyof StatusFacts]: () => StatusFacts[Name] },
  'status' | 'stop'
> {
  readonly state: () => FeedState;
  /** The title of the tab. */
  readonly title: () => string;
}

const tones: Readonly<Record<FeedState, string>> = {
  connecting: '--warn',
  live: '--accent',
  reconnecting: '--warn',
  stopped: '--stop',
};

/** Shows the status in the icon and the title of the tab, and announces each change to screen readers. Call it in an injection context. */
export const showInTab = ({ status, stop, state, title }: TabStatus): void => {
  const announcer = inject(LiveAnnouncer);
  const tab = inject(Title);
  const theme = inject(Theme);
  const words = computed(() => announcement({ status: status(), stop: stop() }));
  effect(() => {
    const text = words();
    untracked(() => void announcer.announce(text, 'polite'));
  });
  effect(() => {
    theme.isDark();
    setIcon(colour(tones[state()]));
  });
  effect(() => tab.setTitle(title()));
};

/** Draws the icon: a dot in the colour of the state. It is visible when the tab is in the background. */
const setIcon = (fill: string): void => {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6" fill="${fill}"/></svg>`;
  document.querySelector('link[rel=icon]')?.setAttribute('href', `data:image/svg+xml,${encodeURIComponent(svg)}`);
};
