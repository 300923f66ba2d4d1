/** The time of frames from the relay's socket to this page, in ms. */
export interface Latency {
  readonly p50: number;
  readonly p95: number;
}

/** Collects the latencies of one period. */
export class LatencyTally {
  private values = new Float64Array(4_096);
  private size = 0;
  private seen = 0;

  add(ms: number): void {
    // Reservoir sampling: when the array is full, a new value replaces a random one.
    this.seen += 1;
    const slot = this.size < this.values.length ? this.size++ : Math.floor(Math.random() * this.seen);
    if (slot < this.values.length) this.values[slot] = ms;
  }

  /** Ends the period and returns its latency; `undefined` without frames. Starts the next period. */
  read(): Latency | undefined {
    const { size } = this;
    [this.size, this.seen] = [0, 0];
    if (size === 0) return undefined;
    const sorted = this.values.subarray(0, size).sort();
    // If the clocks differ, a frame can arrive before it was sent.
    const at = (share: number): number => Math.max(0, sorted[Math.ceil(size * share) - 1] as number);
    return { p50: at(0.5), p95: at(0.95) };
  }
}
