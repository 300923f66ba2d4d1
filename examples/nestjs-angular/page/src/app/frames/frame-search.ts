import type { Row } from '../feed/row';

/** How long a slice may take, in ms. The rest of the animation frame is for drawing and input. */
const sliceMs = 6;

/** Searches new rows in slices, and stores the last matches. */
export class FrameSearch {
  private readonly text: string;
  private readonly capacity: number;
  private readonly onFound: (matches: readonly Row[]) => void;
  private waiting: Row[] = [];
  private matches: Row[] = [];
  private frame: number | undefined;
  private isCaughtUp = false;
  private passed = 0;
  private done = 0;

  /**
   * @param text - the text, in lower case
   * @param capacity - the maximum number of waiting rows, and of stored matches
   * @param onFound - called with the matches, newest first, when they change
   */
  constructor(text: string, capacity: number, onFound: (matches: readonly Row[]) => void) {
    this.text = text;
    this.capacity = capacity;
    this.onFound = onFound;
  }

  /** The number of rows that arrived too fast to be searched. */
  get unsearched(): number {
    return this.passed;
  }

  /** The number of searched rows. */
  get searched(): number {
    return this.done;
  }

  /** Adds rows to search, oldest first. */
  add(rows: readonly Row[], passed = 0): void {
    this.waiting = [...this.waiting, ...rows];
    const tooMany = Math.max(0, this.waiting.length - this.capacity);
    if (tooMany > 0) this.waiting = this.waiting.slice(tooMany);
    this.passed += tooMany + passed;
    this.frame ??= requestAnimationFrame(() => this.slice());
  }

  /** Stops searching new rows. A search through the rows that were already there continues to its end. */
  pause(): void {
    if (this.isCaughtUp) this.stop();
  }

  /** Stops the search. */
  stop(): void {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
    this.frame = undefined;
  }

  private slice(): void {
    const until = performance.now() + sliceMs;
    let next = 0;
    for (; next < this.waiting.length && performance.now() < until; next += 1) {
      const row = this.waiting[next] as Row;
      if (row.includes(this.text)) this.matches.push(row);
    }
    this.done += next;
    this.waiting = this.waiting.slice(next);
    this.matches = this.matches.slice(-this.capacity);
    this.isCaughtUp ||= this.waiting.length === 0;
    this.frame = this.waiting.length > 0 ? requestAnimationFrame(() => this.slice()) : undefined;
    this.onFound(this.matches.slice().reverse());
  }
}
