import { DestroyRef, inject, Injectable, signal } from '@angular/core';

/** The time of day as a signal, for what counts up or down on the page. */
@Injectable({ providedIn: 'root' })
export class Clock {
  private readonly ticks = signal(Date.now());
  /** In epoch ms, four times a second. */
  readonly now = this.ticks.asReadonly();

  constructor() {
    const timer = setInterval(() => this.ticks.set(Date.now()), 250);
    inject(DestroyRef).onDestroy(() => clearInterval(timer));
  }
}
