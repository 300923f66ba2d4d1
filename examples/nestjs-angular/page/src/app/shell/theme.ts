import { computed, effect, Injectable, signal } from '@angular/core';
import { remember, remembered } from './remembered';

export type ThemeChoice = 'system' | 'light' | 'dark';

const choices: readonly ThemeChoice[] = ['system', 'light', 'dark'];

/** Stores the theme: the one of the system, until the user chooses another one. */
@Injectable({ providedIn: 'root' })
export class Theme {
  private readonly system = matchMedia('(prefers-color-scheme: dark)');
  private readonly systemIsDark = signal(this.system.matches);
  private readonly chosen = signal(choices.find((choice) => choice === remembered('theme')) ?? 'system');

  readonly choice = this.chosen.asReadonly();
  readonly isDark = computed(() => (this.chosen() === 'system' ? this.systemIsDark() : this.chosen() === 'dark'));

  constructor() {
    this.system.addEventListener('change', ({ matches }) => this.systemIsDark.set(matches));
    effect(() => {
      document.documentElement.dataset.theme = this.chosen();
    });
  }

  /** Selects the next choice: system, light, dark. */
  next(): void {
    const choice = choices[(choices.indexOf(this.chosen()) + 1) % choices.length] as ThemeChoice;
    document.documentElement.dataset.theme = choice;
    this.chosen.set(choice);
    remember('theme', choice);
  }
}
