import type { FeedState } from '../protocol/feed-state.js';
import type { Place } from '../protocol/place.js';
import { lineField } from './relay-message.js';

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

const fieldBytes = lineField('').length;

/** Consecutive events of a log: frames that don't change the state of the feed, or a single event. */
export class Chunk {
  readonly before: Checkpoint;
  /** The checkpoint after its last event. */
  end: Checkpoint;
  /** What contains its lines, each a `lineField`. */
  readonly memory: Buffer;
  /** The earliest time of its events and of all later ones. It never decreases from chunk to chunk. */
  earliest = Infinity;
  readonly #from: number;
  readonly #ends: number[] = [];
  readonly #times: number[] = [];
  readonly #places: (Place | undefined)[] = [];

  constructor(before: Checkpoint, memory: Buffer, from: number) {
    this.before = this.end = before;
    this.memory = memory;
    this.#from = from;
  }

  get size(): number {
    return this.#ends.length;
  }

  /** @param to - where its line ends */
  add(to: number, time: number, place: Place | undefined): void {
    this.#ends.push(to);
    this.#times.push(time);
    this.#places.push(place);
    if (time < this.earliest) this.earliest = time;
  }

  /** Returns whether a later event is earlier than some of these: a clock was set back. */
  isBefore(time: number): boolean {
    if (this.earliest <= time) return false;
    this.earliest = time;
    return true;
  }

  /** Returns the checkpoint after so many of its events. */
  checkpointAfter(count: number): Checkpoint {
    if (count === 0) return this.before;
    return count === this.size ? this.end : this.afterFrames(count, this.end.watermark);
  }

  /**
   * Returns the checkpoint after so many of its frames.
   *
   * @param known - the watermark now
   */
  afterFrames(count: number, known: number): Checkpoint {
    const { line, gen, offset, frames, holes, at, complete, state, watermark } = this.before;
    let latest = -Infinity;
    for (let n = 0; n < count; n += 1) latest = Math.max(latest, this.#times[n] as number);
    return {
      line,
      gen,
      holes,
      state,
      offset: offset + count,
      frames: frames + count,
      at: Math.max(at, latest),
      complete: Math.max(complete, latest),
      watermark: watermarkAfter(watermark, latest, known),
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
    return count === 0 ? this.earliest : this.#times.slice(count).reduce((one, other) => Math.min(one, other), later);
  }

  /** Returns the lines of some events. */
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
