import { computed, signal, untracked } from '@angular/core';
import type { FrameRing } from '../feed/frame-ring';
import type { Row } from '../feed/row';
import { FrameSearch } from './frame-search';

/** The list is paused: it shows the frames of that time. */
export interface Pause {
  /** The cause: the pause button, scrolling away from the newest frame, or opening a frame. */
  readonly by: 'button' | 'scroll' | 'row';
  /** The start time, in epoch ms. */
  readonly at: number;
  /** The number of the newest frame at that time. */
  readonly newest: number;
}

/** Selects the frames of the list: the last frames or the matches, live or paused. */
export class FrameList {
  private readonly ring: FrameRing;
  private readonly capacity: number;
  private readonly shown = signal<readonly Row[]>([]);
  private readonly text = signal('');
  private readonly pausedState = signal<Pause | undefined>(undefined);
  private readonly newest = signal(0);
  /** The frames of the last step; while paused, those of the step before the pause. */
  private base: readonly Row[] = [];
  private search: FrameSearch | undefined;
  private taken = 0;

  /** The shown frames, newest first. */
  readonly rows = this.shown.asReadonly();
  readonly filter = this.text.asReadonly();
  /** The text to search for: the filter, trimmed and in lower case. */
  readonly query = computed(() => this.text().trim().toLowerCase());
  readonly paused = this.pausedState.asReadonly();
  /** The number of frames that arrived since the list was paused. */
  readonly newer = computed(() => this.newest() - (this.pausedState()?.newest ?? this.newest()));
  /** The numbers of shown, received, searched and unsearched frames. */
  readonly scope = computed(() => ({
    shown: this.shown().length,
    received: this.pausedState()?.newest ?? this.newest(),
    searched: this.search?.searched ?? 0,
    unsearched: this.search?.unsearched ?? 0,
  }));

  constructor(ring: FrameRing, capacity: number) {
    this.ring = ring;
    this.capacity = capacity;
  }

  /** Adds the new frames. */
  follow(): void {
    this.newest.set(this.ring.newest);
    if (untracked(this.pausedState)) return;
    this.base = this.ring.rows();
    if (this.search) this.feed(this.search);
    else this.shown.set(this.base);
  }

  /** Shows the frames that contain a text, or all frames for an empty text. */
  find(text: string): void {
    this.text.set(text);
    this.begin();
  }

  /** Shows the current frames until `resume`. */
  pause(by: Pause['by']): void {
    if (untracked(this.pausedState)) return;
    // The paused list contains the frames that are visible now, so no row moves.
    this.pausedState.set({ by, at: Date.now(), newest: this.base[0]?.number ?? 0 });
    this.search?.pause();
  }

  /** Shows new frames again. */
  resume(): void {
    this.pausedState.set(undefined);
    this.follow();
  }

  /** Returns the index of a frame in the list by its number; -1 if it isn't in the list. */
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
    const text = untracked(this.query);
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
