import type { Frame } from 'rx-trade-feed/browser';
import { Row } from './row';

/** Stores the last frames. When it is full, a new frame overwrites the oldest. */
export class FrameRing {
  private readonly capacity: number;
  private readonly slots: Row[] = [];
  private pushed = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** The number of the newest frame, which is the count of all frames so far. */
  get newest(): number {
    return this.pushed;
  }

  /** The number of the oldest stored frame. */
  get oldest(): number {
    return this.pushed - this.slots.length + 1;
  }

  push(frame: Frame<Uint8Array>): void {
    this.slots[this.pushed % this.capacity] = new Row((this.pushed += 1), frame);
  }

  /** Returns the frame with this number; `undefined` if it isn't stored any more. */
  row(number: number): Row | undefined {
    return number < this.oldest || number > this.pushed ? undefined : this.slots[(number - 1) % this.capacity];
  }

  /** Returns all stored frames, newest first. */
  rows(): Row[] {
    const rows: Row[] = [];
    for (let number = this.pushed; number >= this.oldest; number -= 1) rows.push(this.row(number) as Row);
    return rows;
  }
}
