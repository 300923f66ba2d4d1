import { ChangeDetectionStrategy, Component, effect, input, model, signal, type WritableSignal } from '@angular/core';
import { remember, remembered } from './remembered';

const spans = [1, 5, 15] as const;

/** Chooses how many minutes the charts of a view show. */
@Component({
  selector: 'app-minutes-choice',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <div class="spans" role="group" [attr.aria-label]="label()">
      @for (span of spans; track span) {
        <button type="button" [attr.aria-pressed]="minutes() === span" (click)="minutes.set(span)">
          {{ span }} min
        </button>
      }
    </div>
  `,
  styleUrl: './minutes-choice.css',
})
export class MinutesChoice {
  readonly minutes = model.required<number>();
  readonly label = input.required<string>();

  protected readonly spans = spans;
}

/**
 * Creates the signal of the chosen minutes, which the browser stores. Call it in an injection context.
 *
 * @param key - the key in the storage of the browser
 * @param initial - the minutes when nothing is stored
 */
export const storedMinutes = (key: string, initial: (typeof spans)[number]): WritableSignal<number> => {
  const minutes = signal<number>(spans.find((span) => String(span) === remembered(key)) ?? initial);
  effect(() => remember(key, String(minutes())));
  return minutes;
};
