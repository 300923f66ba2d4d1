import type { CandleWindow } from './market-value.js';

/** Stores the candles of the last minutes. */
export class CandleHistory {
  private readonly keepMs: number;
  private kept: CandleWindow[] = [];

  /** @param keepMs - how far back it reaches, in ms */
  constructor(keepMs: number) {
    this.keepMs = keepMs;
  }

  /** Oldest first. */
  get windows(): readonly CandleWindow[] {
    const newest = this.kept.at(-1)?.end ?? 0;
    return this.kept.filter(({ end }) => end > newest - this.keepMs);
  }

  add(window: CandleWindow): void {
    this.kept.push(window);
    // Copies the array once a minute, not for each window.
    if ((this.kept[0] as CandleWindow).end < window.end - this.keepMs - 60_000) this.kept = [...this.windows];
  }
}
