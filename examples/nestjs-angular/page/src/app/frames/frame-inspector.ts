import { ChangeDetectionStrategy, Component, computed, input, output, signal } from '@angular/core';
import type { Row } from '../feed/row';
import { bytes, count, timeMs } from '../feed/words';
import { leftOut, payloadTokens } from './payload';

/** One frame, with its payload to read. */
@Component({
  selector: 'app-frame-inspector',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <section aria-labelledby="frame-title" (keydown.escape)="closed.emit()">
      <header>
        <h3 id="frame-title">Frame {{ number() }}</h3>
        <button type="button" (click)="copy()">{{ copied() === row() ? 'Copied' : 'Copy' }}</button>
        <button type="button" (click)="closed.emit()">Close</button>
      </header>
      <p class="facts">{{ facts() }}</p>
      <pre
        tabindex="0"
        aria-label="Payload"
      >@for (token of tokens(); track $index) {<span [class]="token.kind">{{ token.text }}</span>}</pre>
      @if (more(); as more) {
        <p class="facts">{{ more }} more are not shown.</p>
      }
    </section>
  `,
  styleUrl: './frame-inspector.css',
})
export class FrameInspector {
  readonly row = input.required<Row>();
  readonly closed = output();

  protected readonly copied = signal<Row | undefined>(undefined);
  protected readonly number = computed(() => count(this.row().number));
  protected readonly tokens = computed(() => payloadTokens(this.row()));
  protected readonly more = computed(() => (leftOut(this.row()) > 0 ? bytes(leftOut(this.row())) : undefined));
  protected readonly facts = computed(() => {
    const { feed, data, isBinary, receivedAt, connection } = this.row().frame;
    return `${feed}, connection ${connection}, ${isBinary ? 'binary' : 'text'}, ${bytes(data.length)}, received ${timeMs(receivedAt)}`;
  });

  protected copy(): void {
    const row = this.row();
    const text = this.tokens()
      .map((token) => token.text)
      .join('');
    navigator.clipboard.writeText(text).then(
      () => this.copied.set(row),
      // Not allowed here: the text can still be selected.
      () => undefined,
    );
  }
}
