import { ChangeDetectionStrategy, Component, type ElementRef, inject, viewChild } from '@angular/core';
import { Shortcuts } from './shortcuts';

/** Lists the keyboard shortcuts. */
@Component({
  selector: 'app-shortcuts-dialog',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <dialog #dialog aria-labelledby="shortcuts-title">
      <header>
        <h2 id="shortcuts-title">Keyboard</h2>
        <button type="button" (click)="dialog.close()">Close</button>
      </header>
      <dl>
        @for (key of keys; track key.does) {
          <div>
            <dt>
              @for (name of key.names; track name) {
                <kbd>{{ name }}</kbd>
              }
            </dt>
            <dd>{{ key.does }}</dd>
          </div>
        }
      </dl>
      <label>
        <input type="checkbox" [checked]="shortcuts.isOn()" (change)="shortcuts.set(!shortcuts.isOn())" />
        Single-key shortcuts
      </label>
    </dialog>
  `,
  styleUrl: './shortcuts-dialog.css',
})
export class ShortcutsDialog {
  protected readonly shortcuts = inject(Shortcuts);
  private readonly dialog = viewChild.required<ElementRef<HTMLDialogElement>>('dialog');

  protected readonly keys = [
    { names: ['P'], does: 'Pause or resume the list of frames' },
    { names: ['/'], does: 'Filter the frames' },
    { names: ['F'], does: 'Go to the list of frames' },
    {
      names: ['↑', '↓', 'PgUp', 'PgDn', 'Home', 'End'],
      does: 'Move in the list, or through the points of a chart with ← →',
    },
    { names: ['Enter'], does: 'Open the payload of a frame' },
    { names: ['N', 'Shift N'], does: 'Go to the next or the previous match in the payload' },
    { names: ['Esc'], does: 'Close the payload, or clear the filter' },
    { names: ['M'], does: 'Switch between the feed and the markets' },
    { names: ['T'], does: 'Switch the theme: light, dark or system' },
    { names: ['?'], does: 'Show this list' },
  ];

  constructor() {
    this.shortcuts.bind('?', () => this.open());
  }

  open(): void {
    this.dialog().nativeElement.showModal();
  }
}
