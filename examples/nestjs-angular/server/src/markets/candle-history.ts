import type { CandleWindow } from './market-value.js';

/** Stores the candles of the last minutes. */
export class CandleHistory {
  private readonly keepMs: number;
  private stored: CandleWindow[] = [];

  /** @param keepMs - how long windows are stored, in ms */
  constructor(keepMs: number) {
    this.keepMs = keepMs;
  }

  /** Oldest first. */
  get windows(): readonly CandleWindow[] {
    const newest = this.stored.at(-1)?.end ?? 0;
    return this.stored.filter(({ end }) => end > newest - this.keepMs);
  }

  add(window: CandleWindow): void {
    this.stored.push(window);
    // Copies the array once a minute, not for each window.
    if ((this.stored[0] as CandleWindow).end < window.end - this.keepMs - 60_000) this.stored = [...this.windows];
  }
}
