import {
  afterRenderEffect,
  ChangeDetectionStrategy,
  Component,
  computed,
  DestroyRef,
  type ElementRef,
  inject,
  input,
  linkedSignal,
  output,
  signal,
  viewChild,
} from '@angular/core';
import type { Row } from '../feed/row';
import { bytes, count, timeMs } from '../feed/words';
import { Shortcuts } from '../shell/shortcuts';
import { splitTokens, type TokenPart } from './matches';
import { leftOut, payloadTokens, rawTokens } from './payload';

/** One frame, with its payload to read, from one match of the filter to the next. */
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
      @if (wanted() !== '') {
        <div class="found">
          <p class="matches" role="status">{{ matchWords() }}</p>
          <button type="button" aria-label="Previous match" [disabled]="matches() < 2" (click)="go(-1)">↑</button>
          <button type="button" aria-label="Next match" [disabled]="matches() < 2" (click)="go(1)">↓</button>
        </div>
      }
      <pre
        #payload
        tabindex="0"
        aria-label="Payload"
      >@for (part of parts(); track $index) {@if (part.match === undefined) {<span [class]="part.kind">{{ part.text }}</span>} @else {<mark [class.current]="part.match === match()">{{ part.text }}</mark>}}</pre>
      @if (more(); as more) {
        <p class="facts">{{ more }} more are not shown.</p>
      }
    </section>
  `,
  styleUrl: './frame-inspector.css',
})
export class FrameInspector {
  readonly row = input.required<Row>();
  /** What the filter searches for, in lower case; empty: nothing. */
  readonly wanted = input.required<string>();
  readonly closed = output();

  private readonly payload = viewChild.required<ElementRef<HTMLElement>>('payload');

  protected readonly copied = signal<Row | undefined>(undefined);
  protected readonly number = computed(() => count(this.row().number));
  private readonly tokens = computed(() => payloadTokens(this.row()));
  protected readonly parts = computed((): readonly TokenPart[] => {
    const row = this.row();
    const wanted = row.frame.isBinary ? this.wanted().replaceAll(' ', '') : this.wanted();
    const parts = splitTokens(this.tokens(), wanted);
    if (wanted === '' || matchesOf(parts) > 0 || row.frame.isBinary) return parts;
    // JSON is shown as this page writes it. What is found in the text as it came alone is shown there.
    const raw = splitTokens(rawTokens(row), wanted);
    return matchesOf(raw) > 0 ? raw : parts;
  });
  protected readonly matches = computed(() => matchesOf(this.parts()));
  /** The one that is in sight: 0, 1, … */
  protected readonly match = linkedSignal({ source: this.parts, computation: () => 0 });
  protected readonly matchWords = computed(() =>
    this.matches() === 0 ? 'No match in what is shown' : `${count(this.match() + 1)} of ${count(this.matches())}`,
  );
  protected readonly more = computed(() => (leftOut(this.row()) > 0 ? bytes(leftOut(this.row())) : undefined));
  protected readonly facts = computed(() => {
    const { feed, data, isBinary, receivedAt, connection } = this.row().frame;
    return `${feed}, connection ${connection}, ${isBinary ? 'binary' : 'text'}, ${bytes(data.length)}, received ${timeMs(receivedAt)}`;
  });

  constructor() {
    const shortcuts = inject(Shortcuts);
    const keys = { n: 1, N: -1 };
    for (const [key, step] of Object.entries(keys)) shortcuts.bind(key, () => this.go(step));
    inject(DestroyRef).onDestroy(() => Object.keys(keys).forEach((key) => shortcuts.unbind(key)));
    afterRenderEffect(() => {
      this.parts();
      this.match();
      showIn(this.payload().nativeElement, 'mark.current');
    });
  }

  protected go(step: number): void {
    const matches = this.matches();
    if (matches > 0) this.match.update((match) => (match + step + matches) % matches);
  }

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

const matchesOf = (parts: readonly TokenPart[]): number =>
  parts.reduce((most, { match }) => Math.max(most, (match ?? -1) + 1), 0);

/** Scrolls within an element alone: the page stays where it is. */
const showIn = (element: HTMLElement, selector: string): void => {
  const found = element.querySelector(selector)?.getBoundingClientRect();
  const frame = element.getBoundingClientRect();
  if (found === undefined) element.scrollTop = 0;
  else if (found.top < frame.top || found.bottom > frame.bottom)
    element.scrollTop += found.top - frame.top - frame.height / 2;
  if (found && (found.left < frame.left || found.right > frame.right))
    element.scrollLeft += found.left - frame.left - frame.width / 2;
};
