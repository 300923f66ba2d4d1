/** How long frames took from the relay's socket to this page, in ms. */
export interface Latency {
  readonly p50: number;
  readonly p95: number;
}

/** Gathers the latencies of one period. */
export class LatencyTally {
  private values = new Float64Array(4_096);
  private size = 0;
  private seen = 0;

  add(ms: number): void {
    // Beyond the room for it, each further value takes the place of another one: still a fair sample.
    this.seen += 1;
    const slot = this.size < this.values.length ? this.size++ : Math.floor(Math.random() * this.seen);
    if (slot < this.values.length) this.values[slot] = ms;
  }

  /** Ends the period, and begins the next one; `undefined` when nothing came. */
  read(): Latency | undefined {
    const { size } = this;
    [this.size, this.seen] = [0, 0];
    if (size === 0) return undefined;
    const sorted = this.values.subarray(0, size).sort();
    // Two clocks that differ by a little can make it look as if a frame had come before it was sent.
    const at = (share: number): number => Math.max(0, sorted[Math.ceil(size * share) - 1] as number);
    return { p50: at(0.5), p95: at(0.95) };
  }
}
