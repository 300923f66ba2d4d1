import type { DropReport } from './drop-report.js';

/** How long drops may go on without a word, in ms. */
const longestSilenceMs = 1_000;

/** Counts the drops of one subscription, and tells of many at once. */
export class DropTally {
  readonly #onDrop: ((report: DropReport) => void) | undefined;
  #dropped = 0;
  #droppedBytes = 0;
  #total = 0;
  #from = 0;
  #to = 0;

  constructor(onDrop: ((report: DropReport) => void) | undefined) {
    this.#onDrop = onDrop;
  }

  /** Whether there is something to tell. */
  get isOpen(): boolean {
    return this.#dropped > 0;
  }

  /** Whether there has been something to tell for long. */
  get isOverdue(): boolean {
    // A clock may be set back meanwhile.
    return Math.abs(this.#to - this.#from) >= longestSilenceMs && this.isOpen;
  }

  /**
   * Counts drops.
   *
   * @param now - in epoch ms
   */
  count(values: number, bytes: number, now: number): void {
    if (this.#dropped === 0) this.#from = now;
    this.#to = now;
    this.#dropped += values;
    this.#droppedBytes += bytes;
    this.#total += values;
  }

  /** Tells what was counted since the last time, if anything; throws what `onDrop` throws, with the count told. */
  tell(reason: DropReport['reason']): void {
    if (!this.isOpen) return;
    const dropped = this.#dropped;
    const droppedBytes = this.#droppedBytes;
    // Before the call: it may drop something itself, or throw.
    this.#dropped = 0;
    this.#droppedBytes = 0;
    this.#onDrop?.({ reason, dropped, droppedBytes, total: this.#total, from: this.#from, to: this.#to });
  }
}
