import type { DropReport } from './drop-report.js';

/** How long drops may continue without a report, in ms. */
const maxReportIntervalMs = 1_000;

/** Counts the drops of one subscription, and reports many at once. */
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

  /** Whether there are unreported drops. */
  get isOpen(): boolean {
    return this.#dropped > 0;
  }

  /** Whether there are drops that have been unreported for too long. */
  get isOverdue(): boolean {
    // `abs`, because a clock may be set back.
    return Math.abs(this.#to - this.#from) >= maxReportIntervalMs && this.isOpen;
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

  /** Reports the drops since the last report, if any. Throws the error of `onDrop`; the drops then count as reported. */
  report(reason: DropReport['reason']): void {
    if (!this.isOpen) return;
    const dropped = this.#dropped;
    const droppedBytes = this.#droppedBytes;
    // Before the call: `onDrop` may cause a drop, or throw.
    this.#dropped = 0;
    this.#droppedBytes = 0;
    this.#onDrop?.({ reason, dropped, droppedBytes, total: this.#total, from: this.#from, to: this.#to });
  }
}
