import type { FeedState } from '../protocol/feed-state.js';
import type { Place } from '../protocol/place.js';

/**
 * A place in the log of a relay, with what a client that goes on there needs to know. In a topic, `frames` counts values
 * as well. No gap counts as a hole: clients receive the gaps of the log, and miss only its events.
 */
export interface Checkpoint extends Place {
  readonly state: FeedState;
  /** No later event is older than this. `-Infinity` before the first event. */
  readonly watermark: number;
  /** The place in the line of the source, a cluster or a log; `undefined` if it has none, and before its first event. */
  readonly shared: Place | undefined;
  /** UTF-8 bytes of all lines before it, removed lines included. */
  readonly written: number;
}

// A line contains no newline, so it's one field of `dataFields`.
export const linePrefix = 'data: ';
export const fieldBytes = linePrefix.length + 1;

/** Consecutive events of a log: frames that don't change the state of the feed, or a single event. */
export class Chunk {
  readonly before: Checkpoint;
  /** What contains its lines, each a field of `dataFields`. */
  readonly memory: Buffer;
  readonly #from: number;
  readonly #ends: number[] = [];
  readonly #times: number[] = [];
  readonly #places: (Place | undefined)[] = [];
  #end: Checkpoint;
  #earliest = Infinity;

  constructor(before: Checkpoint, memory: Buffer, from: number) {
    this.before = this.#end = before;
    this.memory = memory;
    this.#from = from;
  }

  get size(): number {
    return this.#ends.length;
  }

  /** The checkpoint after its last event. */
  get end(): Checkpoint {
    return this.#end;
  }

  /** The earliest time of its events and of all later ones. It never decreases from chunk to chunk. */
  get earliest(): number {
    return this.#earliest;
  }

  /** @param to - where its line ends */
  add(to: number, time: number, place: Place | undefined): void {
    this.#ends.push(to);
    this.#times.push(time);
    this.#places.push(place);
    if (time < this.#earliest) this.#earliest = time;
  }

  finish(end: Checkpoint): void {
    this.#end = end;
  }

  /** Returns whether a later event is earlier than some of these: a clock was set back. */
  isBefore(time: number): boolean {
    if (this.#earliest <= time) return false;
    this.#earliest = time;
    return true;
  }

  /** Returns the checkpoint after so many of its events. */
  checkpointAfter(count: number): Checkpoint {
    const { before } = this;
    if (count === 0) return before;
    if (count === this.size) return this.#end;
    const newest = this.#times.slice(0, count).reduce((one, other) => Math.max(one, other));
    return {
      ...this.#end,
      offset: before.offset + count,
      frames: before.frames + count,
      at: Math.max(before.at, newest),
      complete: Math.max(before.complete, newest),
      watermark: watermarkAfter(before.watermark, newest, this.#end.watermark),
      shared: this.placeAfter(count),
      written: this.writtenAfter(count),
    };
  }

  placeAfter(count: number): Place | undefined {
    return count === 0 ? this.before.shared : this.#places[count - 1];
  }

  writtenAfter(count: number): number {
    return this.before.written + this.#endAfter(count) - this.#from - count * fieldBytes;
  }

  /** Returns the earliest time of the events after the first `count`, and of all later ones. */
  earliestAfter(count: number, later: number): number {
    return count === 0 ? this.#earliest : this.#times.slice(count).reduce((one, other) => Math.min(one, other), later);
  }

  /** Returns the lines of some events, which the next events of the log may overwrite. */
  fields(from: number, to: number): Buffer {
    return this.memory.subarray(this.#endAfter(from), this.#endAfter(to));
  }

  #endAfter(count: number): number {
    return count === 0 ? this.#from : (this.#ends[count - 1] as number);
  }
}

/**
 * Returns the watermark after frames that waited.
 *
 * @param newest - the latest time of them
 * @param known - the watermark now
 */
export const watermarkAfter = (before: number, newest: number, known: number): number =>
  Math.min(known, Math.max(before, newest));
