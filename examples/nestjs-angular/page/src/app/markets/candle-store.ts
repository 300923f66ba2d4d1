import type { Outage } from '../feed/history';
import type { CandleWindow } from './market-stream';

/** A candle of the chart, merged from one or more windows. */
export interface CandleRow {
  /** In epoch ms. */
  readonly start: number;
  readonly end: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly volume: number;
  readonly trades: number;
  /** `false`: trades may be missing. */
  readonly complete: boolean;
}

/** Stores the windows of the stream and of the history, each once. */
export class CandleStore {
  private readonly candleMs: number;
  private readonly keepMs: number;
  /** Keyed by start. */
  private readonly windows = new Map<number, CandleWindow>();
  private readonly gapEnds = new Map<number, number>();
  private readonly names = new Set<string>();
  private newest = 0;

  /**
   * @param candleMs - the length of a window in ms
   * @param keepMs - how long windows are stored, in ms
   */
  constructor(candleMs: number, keepMs: number) {
    this.candleMs = candleMs;
    this.keepMs = keepMs;
  }

  /** The names of the markets, sorted. */
  get symbols(): readonly string[] {
    return [...this.names].sort();
  }

  /** The end of the newest window, in epoch ms; 0 without one. */
  get end(): number {
    return this.newest;
  }

  /** The outages, oldest first. An outage up to the end of the newest window is still current. */
  get outages(): readonly Outage[] {
    return [...this.gapEnds]
      .map(([from, to]) => ({ from, to: to >= this.newest ? undefined : to }))
      .sort((one, other) => one.from - other.from);
  }

  /**
   * Adds a window. Of two windows with the same start, it keeps the complete one. If neither is, it keeps the one with more
   * trades: a stream that starts in the first second of the server has less of it than the server.
   */
  add(window: CandleWindow): void {
    const known = this.windows.get(window.start);
    const isBetter =
      known === undefined ||
      (window.complete !== known.complete ? window.complete : tradesIn(window) > tradesIn(known));
    if (isBetter) this.windows.set(window.start, window);
    // Each window of a current outage repeats its gap with a later end.
    for (const { from, to } of window.gaps) this.gapEnds.set(from, Math.max(to, this.gapEnds.get(from) ?? 0));
    for (const name of Object.keys(window.candles)) this.names.add(name);
    this.newest = Math.max(this.newest, window.end);
    this.forget(this.newest - this.keepMs);
  }

  /** Returns whether the window before this start is stored. */
  hasBefore(start: number): boolean {
    return this.windows.has(start - this.candleMs);
  }

  /** Returns the candles of a market from a time on, oldest first. `lengthMs` is a multiple of the length of a window. */
  rows(symbol: string, lengthMs: number, from: number): readonly CandleRow[] {
    const parts = new Map<number, CandleWindow[]>();
    for (const window of this.sorted(from)) {
      const start = Math.floor(window.start / lengthMs) * lengthMs;
      const known = parts.get(start);
      if (known === undefined) parts.set(start, [window]);
      else known.push(window);
    }
    return [...parts].flatMap(([start, windows]) => this.row(symbol, start, start + lengthMs, windows) ?? []);
  }

  private row(symbol: string, start: number, end: number, windows: readonly CandleWindow[]): CandleRow | undefined {
    const candles = windows.map(({ candles }) => candles[symbol]).filter((candle) => candle !== undefined);
    const [first, last] = [candles[0], candles.at(-1)];
    if (first === undefined || last === undefined) return undefined;
    // The newest candle still grows: windows in the future aren't missing.
    const expected = (Math.min(end, this.newest) - start) / this.candleMs;
    return {
      start,
      end,
      open: first[0],
      high: Math.max(...candles.map(([, high]) => high)),
      low: Math.min(...candles.map(([, , low]) => low)),
      close: last[3],
      volume: candles.reduce((sum, [, , , , volume]) => sum + volume, 0),
      trades: candles.reduce((sum, [, , , , , trades]) => sum + trades, 0),
      complete: windows.length === expected && windows.every(({ complete }) => complete),
    };
  }

  private sorted(from: number): readonly CandleWindow[] {
    return [...this.windows.values()]
      .filter(({ start }) => start >= from)
      .sort((one, other) => one.start - other.start);
  }

  private forget(before: number): void {
    for (const [start, { end }] of this.windows) if (end <= before) this.windows.delete(start);
    for (const [from, to] of this.gapEnds) if (to <= before) this.gapEnds.delete(from);
  }
}

const tradesIn = ({ candles }: CandleWindow): number =>
  Object.values(candles).reduce((sum, [, , , , , trades]) => sum + trades, 0);
