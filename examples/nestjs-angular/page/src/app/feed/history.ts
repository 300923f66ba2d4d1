import type { Latency } from './latency';
import type { ServerHistory } from './server-history';

/** The counts of a second. */
interface Second {
  frames: number;
  bytes: number;
  /** The latency that this page measured. */
  latency?: Latency | undefined;
  /** The p95 of the time that frames spent in the server, in ms. The server measured it. */
  readonly inServer?: number;
}

/** The rates of a second. */
export interface Rates {
  readonly framesPerSecond: number;
  readonly bytesPerSecond: number;
}

/** A time without a connection, or whose frames are missing. In epoch ms; `to` is `undefined` for the current outage. */
export interface Outage {
  readonly from: number;
  readonly to: number | undefined;
}

/** The columns of the charts, with times in seconds. `null` draws nothing. */
export interface Columns {
  readonly times: readonly number[];
  readonly framesPerSecond: readonly (number | null)[];
  readonly bytesPerSecond: readonly (number | null)[];
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly inServer: readonly (number | null)[];
}

/** A shorter part of a second, in seconds, has no meaningful rate. */
const shortestS = 0.2;

/**
 * Stores the seconds and the outages that the charts show.
 *
 * A frame counts in the second in which the relay received it. So a second has the same figures on the server and on this page, and late
 * frames are added to the right second.
 */
export class History {
  private readonly keepMs: number;
  private readonly seconds = new Map<number, Second>();
  private known: Outage[] = [];
  private openedAt: number | undefined;
  private completed = 0;

  constructor(keepMs: number) {
    this.keepMs = keepMs;
  }

  /** The outages, oldest first. */
  get outages(): readonly Outage[] {
    return this.known;
  }

  /** Replaces the content with the history of the server. */
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

  /** Ends the current outage. With `isLossless` it is removed, because no frame is missing. */
  open(at: number, isLossless = false): void {
    this.openedAt ??= at;
    const last = this.known.at(-1);
    if (last === undefined || last.to !== undefined) return;
    this.known.pop();
    if (!isLossless) this.known.push({ ...last, to: at });
  }

  /** Begins an outage, unless there is a current one. */
  lose(from: number): void {
    if (this.known.at(-1)?.to !== undefined || this.known.length === 0) this.known.push({ from, to: undefined });
  }

  /** Adds a time whose frames are missing. */
  miss(from: number, to: number): void {
    const isKnown = this.known.some((outage) => outage.from <= to && (outage.to ?? Infinity) >= from);
    if (!isKnown) this.known.push({ from, to });
  }

  /** Completes all seconds up to this one, in epoch seconds, and stores its latency. */
  complete(second: number, latency: Latency | undefined): void {
    this.completed = second;
    if (latency) this.second(second).latency = latency;
    const oldest = second - this.keepMs / 1_000;
    for (const known of this.seconds.keys()) if (known < oldest) this.seconds.delete(known);
    this.known = this.known.filter(({ to }) => to === undefined || to >= oldest * 1_000);
  }

  /** Returns the rates of a second. If the feed was open for a part of it, the rates are those of that part. */
  rates(second: number): Rates | undefined {
    const openS = this.openS(second);
    if (openS < shortestS) return undefined;
    const { frames = 0, bytes = 0 } = this.seconds.get(second) ?? {};
    return { framesPerSecond: frames / openS, bytesPerSecond: bytes / openS };
  }

  /** Returns the columns from a time on, in epoch ms. The lines are broken at outages. */
  columns(since: number): Columns {
    const points: Point[] = this.known
      .filter(({ to }) => to !== undefined && to >= since)
      .map(({ from, to }) => ({ at: (from + (to as number)) / 2 }));
    for (let second = Math.floor(since / 1_000) - 1; second <= this.completed; second += 1) {
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
    const added: Second = { frames: 0, bytes: 0 };
    this.seconds.set(second, added);
    return added;
  }

  /** Returns how long the feed was open in a second, in seconds. */
  private openS(second: number): number {
    const [from, to] = [second * 1_000, second * 1_000 + 1_000];
    const begin = Math.max(from, this.openedAt ?? Infinity);
    const down = this.known.reduce(
      (sum, outage) => sum + Math.max(0, Math.min(to, outage.to ?? Infinity) - Math.max(begin, outage.from)),
      0,
    );
    return Math.max(0, to - begin - down) / 1_000;
  }

  /** Returns the position of the point of a second, in epoch ms: its end, or the start of an outage that continues after it. */
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
