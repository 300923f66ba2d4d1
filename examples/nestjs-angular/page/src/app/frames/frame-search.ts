import type { Row } from '../feed/row';

/** How long a slice may take, in ms: what is left of it belongs to drawing and to whoever clicks. */
const sliceMs = 6;

/** Searches rows a slice at a time, as they come, and keeps the last that match. */
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
   * @param text - in lower case
   * @param capacity - how many may wait, and how many matches are kept
   * @param onFound - called with the matches, newest first, when there are others
   */
  constructor(text: string, capacity: number, onFound: (matches: readonly Row[]) => void) {
    this.text = text;
    this.capacity = capacity;
    this.onFound = onFound;
  }

  /** How many rows came too fast to be searched. */
  get unsearched(): number {
    return this.passed;
  }

  /** How many rows were searched. */
  get searched(): number {
    return this.done;
  }

  /** Takes rows to search, oldest first. */
  add(rows: readonly Row[], passed = 0): void {
    this.waiting = [...this.waiting, ...rows];
    const tooMany = Math.max(0, this.waiting.length - this.capacity);
    if (tooMany > 0) this.waiting = this.waiting.slice(tooMany);
    this.passed += tooMany + passed;
    this.frame ??= requestAnimationFrame(() => this.slice());
  }

  /** Lets the matches stand as they are until more is added; a search through what was there already goes on to its end. */
  pause(): void {
    if (this.isCaughtUp) this.stop();
  }

  /** Ends it. */
  stop(): void {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
    this.frame = undefined;
  }

  private slice(): void {
    const until = performance.now() + sliceMs;
    let next = 0;
    for (; next < this.waiting.length && performance.now() < until; next += 1) {
      const row = this.waiting[next] as Row;
      if (row.holds(this.text)) this.matches.push(row);
    }
    this.done += next;
    this.waiting = this.waiting.slice(next);
    this.matches = this.matches.slice(-this.capacity);
    this.isCaughtUp ||= this.waiting.length === 0;
    this.frame = this.waiting.length > 0 ? requestAnimationFrame(() => this.slice()) : undefined;
    this.onFound(this.matches.slice().reverse());
  }
}
