/** How many intervals are stored: the newest ones. */
const capacity = 1_024;
/** How many intervals must be known. With fewer, the 99th percentile would be the longest of them. */
const leastKnown = 100;

/** Stores the newest intervals between frames, and returns their 99th percentile. Memory: 1,024 numbers. */
export class RecentIntervals {
  readonly #intervals = new Float64Array(capacity);
  #count = 0;

  /** Adds an interval in ms. */
  add(ms: number): void {
    this.#intervals[this.#count % capacity] = ms;
    this.#count += 1;
  }

  /** Returns the 99th percentile in ms; `undefined` before 100 intervals are known. Sorts them, so do not call it for each frame. */
  p99(): number | undefined {
    if (this.#count < leastKnown) return undefined;
    const known = this.#intervals.slice(0, this.#count).sort();
    return known[Math.ceil(known.length * 0.99) - 1];
  }
}
