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
import { hiddenBytes, payloadTokens, rawTokens } from './payload';

/** Shows the payload of a frame, and moves from one match of the filter to the next. */
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
      @if (query() !== '') {
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
  /** The text of the filter, in lower case; empty without a filter. */
  readonly query = input.required<string>();
  readonly closed = output();

  private readonly payload = viewChild.required<ElementRef<HTMLElement>>('payload');

  protected readonly copied = signal<Row | undefined>(undefined);
  protected readonly number = computed(() => count(this.row().number));
  private readonly tokens = computed(() => payloadTokens(this.row()));
  protected readonly parts = computed((): readonly TokenPart[] => {
    const row = this.row();
    const query = row.frame.isBinary ? this.query().replaceAll(' ', '') : this.query();
    const parts = splitTokens(this.tokens(), query);
    if (query === '' || matchesOf(parts) > 0 || row.frame.isBinary) return parts;
    // JSON is shown with other spaces than the payload has. If only the original text has matches, that text is shown.
    const raw = splitTokens(rawTokens(row), query);
    return matchesOf(raw) > 0 ? raw : parts;
  });
  protected readonly matches = computed(() => matchesOf(this.parts()));
  /** The index of the current match: 0, 1, … */
  protected readonly match = linkedSignal({ source: this.parts, computation: () => 0 });
  protected readonly matchWords = computed(() =>
    this.matches() === 0 ? 'No match in the shown part' : `${count(this.match() + 1)} of ${count(this.matches())}`,
  );
  protected readonly more = computed(() => (hiddenBytes(this.row()) > 0 ? bytes(hiddenBytes(this.row())) : undefined));
  protected readonly facts = computed(() => {
    const { feed, data, isBinary, receivedAt } = this.row().frame;
    return `${feed}, ${isBinary ? 'binary' : 'text'}, ${bytes(data.length)}, received ${timeMs(receivedAt)}`;
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
      // The browser refused. The user can still select the text.
      () => undefined,
    );
  }
}

const matchesOf = (parts: readonly TokenPart[]): number =>
  parts.reduce((most, { match }) => Math.max(most, (match ?? -1) + 1), 0);

/** Scrolls an element to a match, without scrolling the page. */
const showIn = (element: HTMLElement, selector: string): void => {
  const found = element.querySelector(selector)?.getBoundingClientRect();
  const frame = element.getBoundingClientRect();
  if (found === undefined) element.scrollTop = 0;
  else if (found.top < frame.top || found.bottom > frame.bottom)
    element.scrollTop += found.top - frame.top - frame.height / 2;
  if (found && (found.left < frame.left || found.right > frame.right))
    element.scrollLeft += found.left - frame.left - frame.width / 2;
};
