import type { Frame } from 'rx-trade-feed/browser';
import { Row } from './row';

/** The last frames, so many and no more: the newest takes the place of the oldest. */
export class FrameRing {
  private readonly capacity: number;
  private readonly slots: Row[] = [];
  private pushed = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** How many frames came so far; the number of the newest one. */
  get newest(): number {
    return this.pushed;
  }

  /** The number of the oldest frame that is still there. */
  get oldest(): number {
    return this.pushed - this.slots.length + 1;
  }

  push(frame: Frame<Uint8Array>): void {
    this.slots[this.pushed % this.capacity] = new Row((this.pushed += 1), frame);
  }

  /** Gives the frame of that number, if it is still there. */
  row(number: number): Row | undefined {
    return number < this.oldest || number > this.pushed ? undefined : this.slots[(number - 1) % this.capacity];
  }

  /** Gives all of them, newest first. */
  rows(): Row[] {
    const rows: Row[] = [];
    for (let number = this.pushed; number >= this.oldest; number -= 1) rows.push(this.row(number) as Row);
    return rows;
  }
}
