import { computed, signal, untracked } from '@angular/core';
import type { FrameRing } from '../feed/frame-ring';
import type { Row } from '../feed/row';
import { FrameSearch } from './frame-search';

/** The list is held: it shows what was there then. */
export interface Hold {
  /** Who asked for it: the pause button, somebody who scrolled away from the newest frame, or somebody who picked one. */
  readonly by: 'button' | 'scroll' | 'row';
  /** Since when, in epoch ms. */
  readonly at: number;
  /** The number of the newest frame then. */
  readonly newest: number;
}

/** What the list shows: the last frames or those that match, as they come or held. */
export class FrameList {
  private readonly ring: FrameRing;
  private readonly capacity: number;
  private readonly shown = signal<readonly Row[]>([]);
  private readonly text = signal('');
  private readonly held = signal<Hold | undefined>(undefined);
  private readonly newest = signal(0);
  /** The frames of the last step; while it is held, those of the step before that. */
  private base: readonly Row[] = [];
  private search: FrameSearch | undefined;
  private taken = 0;

  /** Newest first. */
  readonly rows = this.shown.asReadonly();
  readonly filter = this.text.asReadonly();
  /** What is searched for: the filter as it is compared. */
  readonly wanted = computed(() => this.text().trim().toLowerCase());
  readonly hold = this.held.asReadonly();
  /** How many frames came since the list is held. */
  readonly newer = computed(() => this.newest() - (this.held()?.newest ?? this.newest()));
  /** In words: what is shown, out of what. */
  readonly scope = computed(() => ({
    shown: this.shown().length,
    came: this.held()?.newest ?? this.newest(),
    searched: this.search?.searched ?? 0,
    unsearched: this.search?.unsearched ?? 0,
  }));

  constructor(ring: FrameRing, capacity: number) {
    this.ring = ring;
    this.capacity = capacity;
  }

  /** There are new frames. */
  follow(): void {
    this.newest.set(this.ring.newest);
    if (untracked(this.held)) return;
    this.base = this.ring.rows();
    if (this.search) this.feed(this.search);
    else this.shown.set(this.base);
  }

  /** Shows the frames that hold a text; all of them without one. */
  find(text: string): void {
    this.text.set(text);
    this.begin();
  }

  /** Shows what is there now, until `resume`. */
  pause(by: Hold['by']): void {
    if (untracked(this.held)) return;
    // Nothing moves: what is held is what is there to see.
    this.held.set({ by, at: Date.now(), newest: this.base[0]?.number ?? 0 });
    this.search?.pause();
  }

  /** Shows what comes again. */
  resume(): void {
    this.held.set(undefined);
    this.follow();
  }

  /** Gives the place of a frame in the list, by its number; -1 when it is not there. */
  indexOf(number: number): number {
    const rows = untracked(this.shown);
    let [low, high] = [0, rows.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = (rows[middle] as Row).number;
      if (found === number) return middle;
      if (found > number) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  private begin(): void {
    this.search?.stop();
    this.search = undefined;
    const rows = this.base;
    const text = untracked(this.wanted);
    if (text === '') {
      this.shown.set(rows);
      return;
    }
    this.search = new FrameSearch(text, this.capacity, (matches) => this.shown.set(matches));
    this.taken = rows[0]?.number ?? 0;
    this.search.add(rows.slice().reverse());
  }

  private feed(search: FrameSearch): void {
    const { newest, oldest } = this.ring;
    const rows: Row[] = [];
    for (let number = Math.max(this.taken + 1, oldest); number <= newest; number += 1)
      rows.push(this.ring.row(number) as Row);
    const passed = Math.max(0, oldest - this.taken - 1);
    this.taken = newest;
    search.add(rows, passed);
  }
}
