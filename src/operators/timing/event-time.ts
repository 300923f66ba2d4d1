import type { LifecycleEvent } from '../../protocol/event.js';
import { isReplayed } from '../items/item.js';

/**
 * Says how far the time of a stream has come: no event before it is expected.
 *
 * A source that delays frames emits watermarks. An event of a recording is its own watermark. For any other source the time is that of the
 * clock, minus the smallest delay that an event has had.
 */
export class EventTime {
  private readonly clock: () => number;
  private watermark: number | undefined;
  private lead: number | undefined;
  private isRecording = false;
  private newest = -Infinity;
  private passed = -Infinity;

  /** @param clock - gives the time in epoch ms */
  constructor(clock: () => number) {
    this.clock = clock;
  }

  /** The time of the newest event or item, in epoch ms. */
  get heardAt(): number {
    return this.newest;
  }

  /** Whether only events move the time forward, not the clock. */
  get isWithoutClock(): boolean {
    return this.watermark !== undefined || this.isRecording;
  }

  /** Takes note of an event or an item, with its time in epoch ms. */
  receive(value: unknown, time: number): void {
    this.isRecording = isReplayed(value);
    if ((value as LifecycleEvent).type === 'watermark') this.watermark = Math.max(this.watermark ?? -Infinity, time);
    else this.pass(time);
    if (!this.isWithoutClock) this.lead = Math.max(this.lead ?? -Infinity, time - this.clock());
  }

  /** Takes note of the time of an item, in epoch ms: cheap, for one that is in the same window as the one before it. */
  pass(time: number): void {
    if (time > this.newest) this.newest = time;
  }

  /** Gives the time up to which the stream is complete, in epoch ms, as known from the last event or call of {@link now}. */
  known(): number {
    return this.watermark ?? Math.max(this.newest, this.passed);
  }

  /** Gives the time up to which the stream is complete, in epoch ms; by the clock, too, where it counts. */
  now(): number {
    if (!this.isWithoutClock) this.passed = Math.max(this.passed, this.clock() + (this.lead ?? 0));
    return this.known();
  }

  /** Takes note that no event follows: the time of the last one has come. */
  end(): void {
    this.now();
    if (this.watermark !== undefined) this.watermark = Math.max(this.watermark, this.newest);
  }

  /** How long until the clock says that a time has come, in ms; `Infinity` where the clock does not count. */
  waitMs(time: number): number {
    return this.isWithoutClock ? Infinity : time - this.clock() - (this.lead ?? 0);
  }
}
