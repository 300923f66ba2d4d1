/** An event after which no event has the same or an earlier time. */
interface Mark {
  readonly seq: number;
  readonly time: number;
}

/**
 * Finds events of a log by their time, without a scan.
 *
 * Times may decrease, for example when a clock is set back. A new event removes all marks whose time is not earlier, so the remaining marks are
 * sorted by position and by time. `add` takes constant time (amortized), a search logarithmic time.
 */
export class TimeIndex {
  #marks: Mark[] = [];
  /** The marks before this index are dropped. */
  #head = 0;

  /** Adds the newest event, with its time in epoch ms. */
  add(seq: number, time: number): void {
    while (this.#marks.length > this.#head && (this.#marks.at(-1) as Mark).time >= time) this.#marks.pop();
    this.#marks.push({ seq, time });
  }

  /** Removes the events up to a position. */
  dropUntil(seq: number): void {
    while (this.#head < this.#marks.length && (this.#marks[this.#head] as Mark).seq <= seq) this.#head += 1;
    // Copies only when more than half of the array is free, so each mark is copied at most once on average.
    if (this.#head * 2 <= this.#marks.length) return;
    this.#marks = this.#marks.slice(this.#head);
    this.#head = 0;
  }

  /** Returns the position after the last event that is not later than `time`; `undefined` if there is none. */
  lastUntil(time: number): number | undefined {
    const end = this.#firstWhere((mark) => mark.time > time);
    return end === this.#head ? undefined : this.#marks[end - 1]?.seq;
  }

  /** Returns the earliest time of the events after a position, in epoch ms; `Infinity` if there are none. */
  earliestAfter(seq: number): number {
    return this.#marks[this.#firstWhere((mark) => mark.seq > seq)]?.time ?? Infinity;
  }

  #firstWhere(matches: (mark: Mark) => boolean): number {
    return firstIndexWhere(this.#head, this.#marks.length, (index) => matches(this.#marks[index] as Mark));
  }
}

/**
 * Finds the first index that matches, by binary search; returns `end` if there is none.
 *
 * @param matches - must be `true` for every index after one that matches
 */
export const firstIndexWhere = (begin: number, end: number, matches: (index: number) => boolean): number => {
  let [from, until] = [begin, end];
  while (from < until) {
    const middle = (from + until) >>> 1;
    if (matches(middle)) until = middle;
    else from = middle + 1;
  }
  return from;
};
