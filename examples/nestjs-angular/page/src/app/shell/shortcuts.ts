import { DestroyRef, inject, Injectable, signal } from '@angular/core';
import { remember, remembered } from './remembered';

/** Handles single-key shortcuts on the whole page, except in text fields. They can be turned off, because they can interfere with speech input. */
@Injectable({ providedIn: 'root' })
export class Shortcuts {
  private readonly actions = new Map<string, () => void>();
  private readonly on = signal(remembered('shortcuts') !== 'off');

  readonly isOn = this.on.asReadonly();

  constructor() {
    document.addEventListener('keydown', (event) => this.press(event));
  }

  set(isOn: boolean): void {
    this.on.set(isOn);
    remember('shortcuts', isOn ? 'on' : 'off');
  }

  /** Binds a key until the caller is destroyed. Call it in an injection context. */
  bind(key: string, action: () => void): void {
    this.actions.set(key, action);
    inject(DestroyRef).onDestroy(() => this.actions.get(key) === action && this.actions.delete(key));
  }

  /** Removes the action of a key. */
  unbind(key: string): void {
    this.actions.delete(key);
  }

  private press(event: KeyboardEvent): void {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    const isWriting = target instanceof HTMLElement && target.closest('input, textarea, select, dialog') !== null;
    if (!this.on() || isWriting || ctrlKey || metaKey || altKey) return;
    const action = this.actions.get(key);
    if (action === undefined) return;
    event.preventDefault();
    action();
  }
}
