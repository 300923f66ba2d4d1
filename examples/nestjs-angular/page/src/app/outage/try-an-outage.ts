import { ChangeDetectionStrategy, Component, inject } from '@angular/core';
import { DemoControls } from './demo-controls';

/** Offers events that a viewer can cause at the local service of the demo. */
@Component({
  selector: 'app-try-an-outage',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    @if (controls.list().length > 0) {
      <details>
        <summary>Try an outage</summary>
        <p>This feed comes from a local service. You can cause the events of a real one.</p>
        <ul>
          @for (control of controls.list(); track control.name) {
            <li>
              <button
                type="button"
                [disabled]="controls.busy() === control.name"
                (click)="controls.cause(control)"
                [attr.aria-describedby]="'demo-' + control.name"
              >
                {{ control.title }}
              </button>
              <span [id]="'demo-' + control.name">{{ control.what }}</span>
            </li>
          }
        </ul>
        <p role="status">{{ controls.answer() }}</p>
      </details>
    }
  `,
  styleUrl: './try-an-outage.css',
})
export class TryAnOutage {
  protected readonly controls = inject(DemoControls);
}
