import { DestroyRef, inject, Injectable, signal } from '@angular/core';
import { Shortcuts } from './shortcuts';

/** A view of the page. */
export type View = 'feed' | 'markets';

/** Chooses the view by the hash of the address, so that bookmarks and the back button work. */
@Injectable({ providedIn: 'root' })
export class Views {
  private readonly shown = signal(viewOf(location.hash));
  private readonly hasMoved = signal(false);

  readonly current = this.shown.asReadonly();
  /** Whether the view has changed since the page was loaded: a new view then takes the focus. */
  readonly isMoved = this.hasMoved.asReadonly();

  constructor() {
    const follow = () => {
      const view = viewOf(location.hash);
      if (view !== this.shown()) this.hasMoved.set(true);
      this.shown.set(view);
    };
    addEventListener('hashchange', follow);
    inject(DestroyRef).onDestroy(() => removeEventListener('hashchange', follow));
    inject(Shortcuts).bind('m', () => {
      location.hash = this.shown() === 'markets' ? 'feed' : 'markets';
    });
  }
}

/** Any other hash belongs to the view of the feed. */
const viewOf = (hash: string): View => (hash === '#markets' ? 'markets' : 'feed');
