/** An event that has no younger one of its time or an earlier time. */
interface Mark {
  readonly seq: number;
  readonly time: number;
}

/**
 * Finds events of a log by their time, without a scan.
 *
 * Times may go back, as a clock that is set back does. Of two events the later one is kept if its time is not after that of the other: so
 * what is kept is sorted by place and by time. `add` takes constant time (amortized), the searches logarithmic time.
 */
export class TimeIndex {
  #marks: Mark[] = [];
  /** Marks before this index were dropped. */
  #head = 0;

  /** Takes note of the newest event, with its time in epoch ms. */
  add(seq: number, time: number): void {
    while (this.#marks.length > this.#head && (this.#marks.at(-1) as Mark).time >= time) this.#marks.pop();
    this.#marks.push({ seq, time });
  }

  /** Forgets events up to a place. */
  dropUntil(seq: number): void {
    while (this.#head < this.#marks.length && (this.#marks[this.#head] as Mark).seq <= seq) this.#head += 1;
    // Half of the array at least is free then, so that an event is moved once on average.
    if (this.#head * 2 <= this.#marks.length) return;
    this.#marks = this.#marks.slice(this.#head);
    this.#head = 0;
  }

  /** Gives the place after the last event whose time is not after `time`; `undefined` when there is none. */
  lastUntil(time: number): number | undefined {
    const end = this.#firstWhere((mark) => mark.time > time);
    return end === this.#head ? undefined : this.#marks[end - 1]?.seq;
  }

  /** Gives the earliest time of the events after a place, in epoch ms; `Infinity` when there are none. */
  earliestAfter(seq: number): number {
    return this.#marks[this.#firstWhere((mark) => mark.seq > seq)]?.time ?? Infinity;
  }

  #firstWhere(is: (mark: Mark) => boolean): number {
    return firstIndexWhere(this.#head, this.#marks.length, (index) => is(this.#marks[index] as Mark));
  }
}

/** Finds the first index for which something holds, and then holds for all after it; `end` when there is none. */
export const firstIndexWhere = (begin: number, end: number, is: (index: number) => boolean): number => {
  let [from, until] = [begin, end];
  while (from < until) {
    const middle = (from + until) >>> 1;
    if (is(middle)) until = middle;
    else from = middle + 1;
  }
  return from;
};
