import type { ClusterLifecycleEvent } from '../../protocol/event.js';
import { isReplayed } from '../items/item.js';

/**
 * Tracks the time of a stream. The stream is complete up to this time: no earlier event is expected.
 *
 * A source that delays frames emits watermarks, and the last watermark is the time. In a recording, each event moves the time. For any other
 * source, the time is the clock minus the smallest delay of an event so far.
 */
export class EventTime {
  private readonly clock: () => number;
  private watermark: number | undefined;
  private lead: number | undefined;
  private isRecording = false;
  private newest = -Infinity;
  private passed = -Infinity;

  /** @param clock - returns the time in epoch ms */
  constructor(clock: () => number) {
    this.clock = clock;
  }

  /** The time of the newest event or item, in epoch ms. */
  get newestAt(): number {
    return this.newest;
  }

  /** Whether only events move the time forward, not the clock. */
  get isWithoutClock(): boolean {
    return this.watermark !== undefined || this.isRecording;
  }

  /** Records an event or an item. `time` is in epoch ms. */
  receive(value: unknown, time: number): void {
    this.isRecording = isReplayed(value);
    if ((value as ClusterLifecycleEvent).type === 'watermark')
      this.watermark = Math.max(this.watermark ?? -Infinity, time);
    else this.pass(time);
    if (!this.isWithoutClock) this.lead = Math.max(this.lead ?? -Infinity, time - this.clock());
  }

  /** Records only the time of an item, in epoch ms. Cheap: for an item in the same window as the item before. */
  pass(time: number): void {
    if (time > this.newest) this.newest = time;
  }

  /** Returns the time up to which the stream is complete, in epoch ms, without reading the clock: as of the last event or call of {@link now}. */
  known(): number {
    return this.watermark ?? Math.max(this.newest, this.passed);
  }

  /** Returns the time up to which the stream is complete, in epoch ms. Reads the clock if the clock moves the time. */
  now(): number {
    if (!this.isWithoutClock) this.passed = Math.max(this.passed, this.clock() + (this.lead ?? 0));
    return this.known();
  }

  /** Records that no event follows: the stream is complete up to the last event. */
  end(): void {
    this.now();
    if (this.watermark !== undefined) this.watermark = Math.max(this.watermark, this.newest);
  }

  /** Returns how long until the clock reaches a time, in ms; `Infinity` if the clock does not move the time. */
  waitMs(time: number): number {
    return this.isWithoutClock ? Infinity : time - this.clock() - (this.lead ?? 0);
  }
}
