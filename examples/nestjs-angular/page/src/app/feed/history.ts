import type { Latency } from './latency';

/** A second of the feed. `null`: it was not open, so there is nothing to draw. */
export interface Sample {
  /** The end of the second, in epoch ms. */
  readonly at: number;
  readonly framesPerSecond: number | null;
  readonly bytesPerSecond: number | null;
  readonly latency: Latency | undefined;
}

/** A time without a connection, or of which frames are missing. In epoch ms; `to` is `undefined` while it goes on. */
export interface Outage {
  readonly from: number;
  readonly to: number | undefined;
}

/** Columns as the charts take them; times in seconds. */
export interface Columns {
  readonly times: readonly number[];
  readonly framesPerSecond: readonly (number | null)[];
  readonly bytesPerSecond: readonly (number | null)[];
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
}

/** What the charts show: a sample a second and the outages, for as long as is kept. */
export class History {
  private readonly keepMs: number;
  private samples: Sample[] = [];
  private known: Outage[] = [];

  constructor(keepMs: number) {
    this.keepMs = keepMs;
  }

  /** Oldest first. */
  get outages(): readonly Outage[] {
    return this.known;
  }

  add(sample: Sample): void {
    const oldest = sample.at - this.keepMs;
    this.samples.push(sample);
    // Now and then, not with each sample.
    if ((this.samples[0] as Sample).at < oldest - 60_000) {
      this.samples = this.samples.filter(({ at }) => at >= oldest);
      this.known = this.known.filter(({ to }) => to === undefined || to >= oldest);
    }
  }

  /** An outage begins; one that goes on already stays as it is. */
  begin(from: number): void {
    if (this.known.at(-1)?.to !== undefined || this.known.length === 0) this.known.push({ from, to: undefined });
  }

  /** The outage that goes on is over. With `isLossless` it is forgotten: nothing is missing. */
  end(to: number, isLossless = false): void {
    const last = this.known.at(-1);
    if (last === undefined || last.to !== undefined) return;
    this.known.pop();
    if (!isLossless) this.known.push({ ...last, to });
  }

  /** Frames are missing between two moments. */
  miss(from: number, to: number): void {
    const isKnown = this.known.some((outage) => outage.from <= to && (outage.to ?? Infinity) >= from);
    if (!isKnown) this.known.push({ from, to });
  }

  /** Gives the columns of the samples since then, the line broken where an outage was. */
  columns(since: number): Columns {
    const drawn = this.samples.filter(({ at }) => at >= since - 2_000);
    const breaks = this.known
      .filter(({ to }) => to !== undefined && to >= since)
      .map(({ from, to }) => blank((from + (to as number)) / 2));
    const all = breaks.length === 0 ? drawn : [...drawn, ...breaks].sort((one, other) => one.at - other.at);
    return {
      times: all.map(({ at }) => at / 1_000),
      framesPerSecond: all.map(({ framesPerSecond }) => framesPerSecond),
      bytesPerSecond: all.map(({ bytesPerSecond }) => bytesPerSecond),
      p50: all.map(({ latency }) => latency?.p50 ?? null),
      p95: all.map(({ latency }) => latency?.p95 ?? null),
    };
  }
}

const blank = (at: number): Sample => ({ at, framesPerSecond: null, bytesPerSecond: null, latency: undefined });
