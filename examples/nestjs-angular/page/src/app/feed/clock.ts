import { DestroyRef, inject, Injectable, signal } from '@angular/core';

/** Provides the time as a signal, for durations that count up or down on the page. */
@Injectable({ providedIn: 'root' })
export class Clock {
  private readonly ticks = signal(Date.now());
  /** The time in epoch ms. Changes four times a second. */
  readonly now = this.ticks.asReadonly();

  constructor() {
    const timer = setInterval(() => this.ticks.set(Date.now()), 250);
    inject(DestroyRef).onDestroy(() => clearInterval(timer));
  }
}
