import { isFrame, isLogged, isWatermark } from '../items/item.js';

/**
 * Tracks the time of a stream, in epoch ms: up to then the stream is complete, so no earlier event is expected. If a
 * source delays frames, it emits watermarks, and the last one is the time. While reading a log, each record moves the
 * time. For any other source, the time is the clock minus the smallest delay of an event so far.
 */
export class EventTime {
  private readonly clock: () => number;
  private watermark: number | undefined;
  /** The smallest delay so far, negated: how far an event's time was ahead of the clock. */
  private lead: number | undefined;
  private isLogged = false;
  private newest = -Infinity;
  private passed = -Infinity;

  constructor(clock: () => number) {
    this.clock = clock;
  }

  /** The time of the newest event or item. */
  get newestAt(): number {
    return this.newest;
  }

  /** Whether only events move the time forward, not the clock. */
  get isWithoutClock(): boolean {
    return this.watermark !== undefined || this.isLogged;
  }

  /** Records an event or an item. */
  receive(value: unknown, time: number): void {
    // Most are frames, and this runs for each.
    const isOfFeed = isFrame(value);
    this.isLogged = isOfFeed ? 'offset' in value : isLogged(value);
    const moves = !isOfFeed && isWatermark(value);
    if (moves || (this.isLogged && this.watermark !== undefined))
      this.watermark = Math.max(this.watermark ?? -Infinity, time);
    else this.pass(time);
    if (!this.isWithoutClock || moves) this.lead = Math.max(this.lead ?? -Infinity, time - this.clock());
  }

  /** Records only the time of an item. It's the cheap way, for an item in the same window as the one before. */
  pass(time: number): void {
    if (time > this.newest) this.newest = time;
  }

  /** Returns the time as of the last event or call to {@link now}, without reading the clock. */
  known(): number {
    return this.watermark ?? Math.max(this.newest, this.passed);
  }

  /** Returns the time. Reads the clock if the clock moves it. */
  now(): number {
    if (!this.isWithoutClock) this.passed = Math.max(this.passed, this.clock() + (this.lead ?? 0));
    return this.known();
  }

  /** Returns the time, assuming that the stream is as late as usual; in a log, the time of the last event. */
  expected(): number {
    if (this.lead === undefined || this.isLogged) return this.known();
    return Math.max(this.known(), this.clock() + this.lead);
  }

  /** Records that no event follows, so the stream is complete up to the last one. */
  end(): void {
    this.now();
    if (this.watermark !== undefined) this.watermark = Math.max(this.watermark, this.newest);
  }

  /** Returns how long until the clock reaches a time, in ms; `Infinity` if the clock doesn't move the time. */
  waitMs(time: number): number {
    return this.isWithoutClock ? Infinity : time - this.clock() - (this.lead ?? 0);
  }
}

/**
 * Returns the time that a feed has reached, in epoch ms: at least that of its last record. Before its first event, a
 * feed may lag the clock by any amount.
 */
export const reachedAt = (time: EventTime, { at }: { readonly at: number }): number =>
  time.known() === -Infinity ? at : Math.max(at, Math.floor(time.now()));
