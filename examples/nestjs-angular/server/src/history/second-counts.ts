import type { SecondRow } from './history-answer.js';

/** The maximum number of delays of a second that are stored to compute the p95. */
const maxDelays = 1_000;

/** Counts frames per second for the stored time, and in total. */
export class SecondCounts {
  private readonly storedSeconds: number;
  private readonly rows: SecondRow[] = [];
  private current = emptySecond(0);
  private frames = 0;
  private bytes = 0;
  /** The frames of the newest millisecond. More of the same millisecond may follow. */
  private newest = { at: 0, frames: 0, bytes: 0 };

  constructor(storedMs: number) {
    this.storedSeconds = storedMs / 1_000;
  }

  /**
   * Counts a frame.
   *
   * @param at - the arrival, in epoch ms
   * @param delayMs - how long the frame has been in this server
   */
  add(at: number, bytes: number, delayMs: number): void {
    const second = Math.floor(at / 1_000);
    if (second > this.current.second) this.begin(second);
    if (at > this.newest.at) this.newest = { at, frames: 0, bytes: 0 };
    for (const counts of [this, this.current, this.newest] as { frames: number; bytes: number }[]) {
      counts.frames += 1;
      counts.bytes += bytes;
    }
    if (this.current.delays.length < maxDelays) this.current.delays.push(delayMs);
  }

  /** Returns the counts before a time, in epoch ms. The time mustn't be earlier than the newest frame. */
  before(until: number): { readonly frames: number; readonly bytes: number; readonly seconds: readonly SecondRow[] } {
    const { newest, current } = this;
    const later = newest.at < until ? { frames: 0, bytes: 0 } : newest;
    const [second, frames, bytes, delayMs] = rowOf(current);
    const last: SecondRow = [second, frames - later.frames, bytes - later.bytes, delayMs];
    const oldest = Math.floor(until / 1_000) - this.storedSeconds;
    return {
      frames: this.frames - later.frames,
      bytes: this.bytes - later.bytes,
      seconds: [...this.rows, last].filter(([at, count]) => at >= oldest && count > 0),
    };
  }

  private begin(second: number): void {
    if (this.current.frames > 0) this.rows.push(rowOf(this.current));
    this.current = emptySecond(second);
    while (this.rows.length > this.storedSeconds) this.rows.shift();
  }
}

const emptySecond = (second: number) => ({ second, frames: 0, bytes: 0, delays: [] as number[] });

const rowOf = ({ second, frames, bytes, delays }: ReturnType<typeof emptySecond>): SecondRow => {
  const sorted = delays.slice().sort((one, other) => one - other);
  return [second, frames, bytes, sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0];
};
