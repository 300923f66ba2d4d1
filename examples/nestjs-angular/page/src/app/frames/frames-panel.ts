import { CdkFixedSizeVirtualScroll, CdkVirtualForOf, CdkVirtualScrollViewport } from '@angular/cdk/scrolling';
import {
  afterNextRender,
  ChangeDetectionStrategy,
  Component,
  computed,
  DestroyRef,
  effect,
  ElementRef,
  inject,
  signal,
  untracked,
  viewChild,
} from '@angular/core';
import { takeUntilDestroyed } from '@angular/core/rxjs-interop';
import { Monitor } from '../feed/monitor';
import type { Row } from '../feed/row';
import { bytes, count, counted, moment, timeMs } from '../feed/words';
import { Shortcuts } from '../shell/shortcuts';
import { Differences, type Field } from './differences';
import { FrameInspector } from './frame-inspector';
import { FrameList } from './frame-list';
import { splitByMatches, splitHex, type TokenPart } from './matches';

const capacity = 2_000;
/** No row is wide enough for more. */
const [mostFields, mostLetters] = [32, 320];
/** The delay from the last key to the announcement of a result, in ms. */
const announceAfterMs = 800;

/** Shows the last frames: live or paused, with a filter and an inspector. */
@Component({
  selector: 'app-frames-panel',
  changeDetection: ChangeDetectionStrategy.OnPush,
  imports: [CdkFixedSizeVirtualScroll, CdkVirtualForOf, CdkVirtualScrollViewport, FrameInspector],
  templateUrl: './frames-panel.html',
  styleUrl: './frames-panel.css',
})
export class FramesPanel {
  private readonly monitor = inject(Monitor);
  private readonly viewport = viewChild.required(CdkVirtualScrollViewport);
  private readonly field = viewChild.required<ElementRef<HTMLInputElement>>('field');
  private readonly active = signal<Row | undefined>(undefined);
  private readonly isInspecting = signal(false);
  private readonly announcement = signal('');
  private readonly differences = new Differences();
  private hasBegun = false;

  protected readonly list = new FrameList(this.monitor.ring, capacity);
  protected readonly rowHeight = 30;
  protected readonly current = this.active.asReadonly();
  protected readonly opened = computed(() => (this.isInspecting() ? this.active() : undefined));
  /** The text for screen readers: the result of the filter, and whether the list is paused. */
  protected readonly announced = this.announcement.asReadonly();
  protected readonly pauseWords = computed(() => {
    const pause = this.list.paused();
    return (
      pause &&
      `Paused at ${moment(pause.at, Date.now())}. ${this.list.newer() === 0 ? 'No newer frames.' : `${counted(this.list.newer(), 'newer frame')}.`}`
    );
  });
  protected readonly scopeWords = computed(() => {
    const { shown, received, unsearched } = this.list.scope();
    if (this.list.filter().trim() === '')
      return shown < received ? `the last ${count(shown)} of ${count(received)}` : `all ${count(shown)}`;
    return `${counted(shown, 'match').replace('matchs', 'matches')}${unsearched > 0 ? `, ${count(unsearched)} arrived too fast to search` : ''}`;
  });
  private readonly searchWords = computed(() =>
    this.list.filter().trim() === '' ? `No filter: ${counted(this.list.scope().shown, 'frame')}` : this.scopeWords(),
  );
  protected readonly emptyWords = computed(() => {
    if (this.list.filter().trim() !== '') return 'None of the last frames match. New frames are searched too.';
    return this.monitor.state() === 'live'
      ? 'The feed is open. No frame has arrived yet.'
      : 'No frame has arrived yet.';
  });

  constructor() {
    const destroyRef = inject(DestroyRef);
    effect(() => {
      this.monitor.step();
      untracked(() => {
        // The text of a paused row doesn't change.
        if (!this.list.paused()) this.differences.learn(this.monitor.ring);
        this.list.follow();
      });
    });
    effect((onCleanup) => {
      this.list.filter();
      if (!this.hasBegun) return;
      const timer = setTimeout(() => this.announcement.set(untracked(this.searchWords)), announceAfterMs);
      onCleanup(() => clearTimeout(timer));
    });
    effect(() => {
      const isPaused = this.list.paused() !== undefined;
      if (this.hasBegun) this.announcement.set(isPaused ? 'The list is paused.' : 'The list continues.');
      this.hasBegun = true;
    });
    afterNextRender(() => {
      this.viewport()
        .elementScrolled()
        .pipe(takeUntilDestroyed(destroyRef))
        .subscribe(() => this.scrolled());
    });
    const shortcuts = inject(Shortcuts);
    shortcuts.bind('p', () => this.toggle());
    shortcuts.bind('/', () => this.field().nativeElement.focus());
    shortcuts.bind('f', () => this.viewport().elementRef.nativeElement.focus());
  }

  protected toggle(): void {
    if (this.list.paused()) this.resume();
    else this.list.pause('button');
  }

  protected resume(): void {
    this.isInspecting.set(false);
    this.active.set(undefined);
    this.viewport().scrollToOffset(0);
    this.list.resume();
  }

  protected search(text: string): void {
    this.viewport().scrollToOffset(0);
    this.list.find(text);
  }

  protected clear(): void {
    this.field().nativeElement.value = '';
    this.search('');
  }

  protected open(row: Row): void {
    this.list.pause('row');
    this.active.set(row);
    this.isInspecting.set(true);
  }

  protected close(): void {
    this.isInspecting.set(false);
    this.viewport().elementRef.nativeElement.focus({ preventScroll: true });
    if (this.list.paused()?.by === 'row' && this.viewport().measureScrollOffset() === 0) this.resume();
  }

  protected press(event: KeyboardEvent): void {
    const rows = this.list.rows();
    const page = Math.max(1, Math.floor(this.viewport().getViewportSize() / this.rowHeight) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[
      event.key
    ];
    if (step !== undefined && rows.length > 0) {
      event.preventDefault();
      this.list.pause('row');
      const row = this.active();
      const from = row ? this.list.indexOf(row.number) : -1;
      this.moveTo(from < 0 && Number.isFinite(step) ? 0 : Math.min(rows.length - 1, Math.max(0, from + step)));
    } else if ((event.key === 'Enter' || event.key === ' ') && this.active()) {
      event.preventDefault();
      this.open(this.active() as Row);
    } else if (event.key === 'Escape') {
      if (this.isInspecting()) this.close();
      else if (this.list.paused()) this.resume();
    }
  }

  protected byNumber(_index: number, row: Row): number {
    return row.number;
  }

  protected at({ frame }: Row): string {
    return timeMs(frame.receivedAt);
  }

  /** Returns the payload around a match of the filter; without a filter, the fields that differ from frame to frame. */
  protected preview(row: Row): readonly TokenPart[] {
    const query = this.list.query();
    if (query === '') return partsOf(this.differences.of(row));
    const text = row.excerpt(query);
    return row.frame.isBinary ? splitHex(text, query) : splitByMatches(text, query);
  }

  protected size({ frame }: Row): string {
    return bytes(frame.data.length);
  }

  private moveTo(index: number): void {
    const row = this.list.rows()[index];
    if (row === undefined) return;
    this.active.set(row);
    const viewport = this.viewport();
    const [top, height] = [viewport.measureScrollOffset(), viewport.getViewportSize()];
    const place = index * this.rowHeight;
    if (place < top) viewport.scrollToOffset(place);
    else if (place + this.rowHeight > top + height) viewport.scrollToOffset(place + this.rowHeight - height);
  }

  /** Pauses the list when the user scrolls away from the newest frame, and resumes it at the top. */
  private scrolled(): void {
    const top = this.viewport().measureScrollOffset();
    if (top > this.rowHeight / 2) this.list.pause('scroll');
    else if (top <= 0 && this.list.paused()?.by === 'scroll') this.list.resume();
  }
}

/** Returns the names and the values of fields. Values with the same name follow it together. */
const partsOf = (fields: readonly Field[]): readonly TokenPart[] =>
  fields.slice(0, mostFields).flatMap(({ name, value }, index) => {
    const part = { kind: 'plain', text: `${value.slice(0, mostLetters)} `, match: undefined } as const;
    return name === '' || name === fields[index - 1]?.name
      ? [part]
      : [{ ...part, kind: 'key', text: `${name} ` }, part];
  });
