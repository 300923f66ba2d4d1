import { Ring } from '../operators/bounded/ring.js';
import type { FeedPosition } from '../protocol/feed-position.js';
import type { Snapshot } from '../protocol/snapshot.js';
import { firstIndexWhere } from './time-index.js';

/** A position between two events of a log, and the state at that position. */
export interface Position {
  /** The number of events before it. */
  readonly seq: number;
  /** The number of frames before it; for a topic, the values count too. */
  readonly frames: number;
  /** The latest time of the events before it, in epoch ms. It never decreases. */
  readonly at: number;
  /** The state of the feed. */
  readonly snapshot: Snapshot;
  /** No event after the position is older, in epoch ms. `-Infinity` before the first event. */
  readonly watermark: number;
  /** The position in the feed of a cluster; `undefined` in a relay without a cluster, and before the first event of the cluster. */
  readonly shared: FeedPosition | undefined;
}

/** The limits of the stored entries. The oldest ones are removed first. */
export interface EntryBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
}

/** Stores the newest entries of a log: for each event its line and the position after it. */
export class LogEntries {
  readonly #bounds: EntryBounds;
  readonly #ring = new Ring<Entry>();
  #bytes = 0;
  /** The UTF-8 bytes of the removed lines. */
  #removed = 0;
  #oldest: Position;
  #newest: Position;

  /** @param start - the position before the first event */
  constructor(bounds: EntryBounds, start: Position) {
    this.#bounds = bounds;
    this.#oldest = this.#newest = start;
  }

  /** The position before the oldest stored entry. */
  get oldest(): Position {
    return this.#oldest;
  }

  /** The position after the newest entry. */
  get newest(): Position {
    return this.#newest;
  }

  /** The number of stored entries. */
  get size(): number {
    return this.#ring.size;
  }

  /** The bytes of the stored lines in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds the line of an event, then removes the oldest entries that are beyond the limits.
   *
   * @param end - the position after the event
   */
  add(line: string, end: Position): void {
    const length = Buffer.byteLength(line);
    const bytes = bytesInMemory(line, length);
    const entry = { ...end, line, bytes, written: this.#writtenBefore(this.size) + length };
    this.#ring.push(entry);
    this.#newest = entry;
    this.#bytes += bytes;
    while (this.size > this.#bounds.capacity || this.#bytes > this.#bounds.capacityBytes) this.#removeOldest();
  }

  /** Returns the entry of the first event after the position `seq`, which must be stored. */
  after(seq: number): Position & { readonly line: string } {
    return this.#ring.at(seq - this.#oldest.seq);
  }

  /** Returns the position after `seq` events; `undefined` if it is removed, or not reached yet. */
  positionAt(seq: number): Position | undefined {
    const index = seq - this.#oldest.seq;
    return index < 0 || index > this.size ? undefined : this.#positionBefore(index);
  }

  /** Returns the last position that `is` accepts. It must accept every position before one that it accepts. */
  lastWhere(is: (position: Position) => boolean): Position | undefined {
    const end = firstIndexWhere(0, this.size + 1, (index) => !is(this.#positionBefore(index)));
    return end === 0 ? undefined : this.#positionBefore(end - 1);
  }

  /** Returns the oldest position that is followed by at most `bytes` bytes of lines, in UTF-8. */
  positionBeforeLast(bytes: number): Position {
    const from = this.#writtenBefore(this.size) - bytes;
    return this.#positionBefore(firstIndexWhere(0, this.size, (index) => this.#writtenBefore(index) >= from));
  }

  #positionBefore(index: number): Position {
    return index === 0 ? this.#oldest : this.#ring.at(index - 1);
  }

  // The UTF-8 bytes of all lines before an index, including removed lines.
  #writtenBefore(index: number): number {
    return index === 0 ? this.#removed : this.#ring.at(index - 1).written;
  }

  #removeOldest(): void {
    const { seq, frames, at, snapshot, watermark, shared, bytes, written } = this.#ring.shift() as Entry;
    this.#bytes -= bytes;
    this.#removed = written;
    // A copy without the line, so that the garbage collector can free the line.
    this.#oldest = { seq, frames, at, snapshot, watermark, shared };
  }
}

interface Entry extends Position {
  readonly line: string;
  readonly bytes: number;
  /** The UTF-8 bytes of this line and of all lines before it. */
  readonly written: number;
}

// V8 stores one byte for each character of a string, or two if one character is beyond Latin-1.
const bytesInMemory = (line: string, utf8Bytes: number): number =>
  utf8Bytes > line.length && beyondLatin1.test(line) ? line.length * 2 : line.length;

const beyondLatin1 = /[\u0100-\uffff]/;
