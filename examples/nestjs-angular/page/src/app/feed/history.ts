import type { Latency } from './latency';
import type { ServerHistory } from './server-history';

/** What came in a second. */
interface Second {
  frames: number;
  bytes: number;
  /** As this page measured it. */
  latency?: Latency | undefined;
  /** As the server measured it, in ms: p95 of the way through the server alone. */
  readonly inServer?: number;
}

/** The rates of a second. */
export interface Rates {
  readonly framesPerSecond: number;
  readonly bytesPerSecond: number;
}

/** A time without a connection, or of which frames are missing. In epoch ms; `to` is `undefined` while it goes on. */
export interface Outage {
  readonly from: number;
  readonly to: number | undefined;
}

/** Columns as the charts take them; times in seconds. `null`: there is nothing to draw. */
export interface Columns {
  readonly times: readonly number[];
  readonly framesPerSecond: readonly (number | null)[];
  readonly bytesPerSecond: readonly (number | null)[];
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly inServer: readonly (number | null)[];
}

/** The rates of less than this, in seconds, say nothing. */
const shortestS = 0.2;

/**
 * What the charts show: the seconds and the outages, for as long as is kept.
 *
 * A frame counts in the second in which the relay received it. So a second has the same figures on the server and here, and frames that
 * come late fill the hole that they left.
 */
export class History {
  private readonly keepMs: number;
  private readonly seconds = new Map<number, Second>();
  private known: Outage[] = [];
  private openedAt: number | undefined;
  private settled = 0;

  constructor(keepMs: number) {
    this.keepMs = keepMs;
  }

  /** Oldest first. */
  get outages(): readonly Outage[] {
    return this.known;
  }

  /** Replaces everything with what the server knows. */
  begin({ openedAt, seconds, events, down }: ServerHistory): void {
    this.seconds.clear();
    for (const [second, frames, bytes, inServer] of seconds) this.seconds.set(second, { frames, bytes, inServer });
    this.openedAt = openedAt;
    this.known = events.flatMap((event) => (event.type === 'gap' ? [{ from: event.from, to: event.to }] : []));
    if (down) this.known.push({ from: down.from, to: undefined });
  }

  /** Counts a frame. */
  count(at: number, bytes: number): void {
    const second = this.second(Math.floor(at / 1_000));
    second.frames += 1;
    second.bytes += bytes;
  }

  /** The feed is open: the outage that goes on is over. With `isLossless` it is forgotten: nothing is missing. */
  open(at: number, isLossless = false): void {
    this.openedAt ??= at;
    const last = this.known.at(-1);
    if (last === undefined || last.to !== undefined) return;
    this.known.pop();
    if (!isLossless) this.known.push({ ...last, to: at });
  }

  /** An outage begins; one that goes on already stays as it is. */
  lose(from: number): void {
    if (this.known.at(-1)?.to !== undefined || this.known.length === 0) this.known.push({ from, to: undefined });
  }

  /** Frames are missing between two moments. */
  miss(from: number, to: number): void {
    const isKnown = this.known.some((outage) => outage.from <= to && (outage.to ?? Infinity) >= from);
    if (!isKnown) this.known.push({ from, to });
  }

  /** Takes a second, in epoch seconds, and those before it as complete, with the latency that was measured until then. */
  settle(second: number, latency: Latency | undefined): void {
    this.settled = second;
    if (latency) this.second(second).latency = latency;
    const oldest = second - this.keepMs / 1_000;
    for (const known of this.seconds.keys()) if (known < oldest) this.seconds.delete(known);
    this.known = this.known.filter(({ to }) => to === undefined || to >= oldest * 1_000);
  }

  /** Gives the rates of a second; of one in which the feed was open for a part alone, those of that part. */
  rates(second: number): Rates | undefined {
    const openS = this.openS(second);
    if (openS < shortestS) return undefined;
    const { frames = 0, bytes = 0 } = this.seconds.get(second) ?? {};
    return { framesPerSecond: frames / openS, bytesPerSecond: bytes / openS };
  }

  /** Gives the columns of the seconds since then, the line broken where an outage was. */
  columns(since: number): Columns {
    const points: Point[] = this.known
      .filter(({ to }) => to !== undefined && to >= since)
      .map(({ from, to }) => ({ at: (from + (to as number)) / 2 }));
    for (let second = Math.floor(since / 1_000) - 1; second <= this.settled; second += 1) {
      const rates = this.rates(second);
      if (rates) points.push({ at: this.endOf(second), rates, second: this.seconds.get(second) });
    }
    points.sort((one, other) => one.at - other.at);
    const column = (pick: (point: Point) => number | undefined) => points.map((point) => pick(point) ?? null);
    return {
      times: points.map(({ at }) => at / 1_000),
      framesPerSecond: column(({ rates }) => rates?.framesPerSecond),
      bytesPerSecond: column(({ rates }) => rates?.bytesPerSecond),
      p50: column(({ second }) => second?.latency?.p50),
      p95: column(({ second }) => second?.latency?.p95),
      inServer: column(({ second }) => second?.inServer),
    };
  }

  private second(second: number): Second {
    const known = this.seconds.get(second);
    if (known) return known;
    const made: Second = { frames: 0, bytes: 0 };
    this.seconds.set(second, made);
    return made;
  }

  /** How long the feed was open in a second, in seconds. */
  private openS(second: number): number {
    const [from, to] = [second * 1_000, second * 1_000 + 1_000];
    const begin = Math.max(from, this.openedAt ?? Infinity);
    const down = this.known.reduce(
      (sum, outage) => sum + Math.max(0, Math.min(to, outage.to ?? Infinity) - Math.max(begin, outage.from)),
      0,
    );
    return Math.max(0, to - begin - down) / 1_000;
  }

  /** Where the point of a second is drawn, in epoch ms: at its end, or where the outage begins that goes on beyond it. */
  private endOf(second: number): number {
    const to = second * 1_000 + 1_000;
    const outage = this.known.find((known) => known.from < to && (known.to ?? Infinity) > to);
    return outage ? Math.max(outage.from, second * 1_000) : to;
  }
}

interface Point {
  /** In epoch ms. */
  readonly at: number;
  readonly rates?: Rates;
  readonly second?: Second | undefined;
}
