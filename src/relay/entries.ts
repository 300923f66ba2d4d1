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

/** The line of an event, in the format of `dataFields`. */
interface Line {
  /** The block that contains the line. */
  readonly block: Buffer;
  readonly from: number;
  readonly to: number;
}

/** Where each number of an event is. */
const column = { offset: 0, frames: 1, at: 2, complete: 3, watermark: 4, written: 5, earliest: 6, from: 7, to: 8 };
const width = 9;

type References = Pick<Checkpoint, 'state' | 'shared'> & Pick<Line, 'block'>;

const firstSlots = 16;

/**
 * Queues events, first in, first out, each with the checkpoint after it. An index counts from the oldest event.
 *
 * The numbers are in an array outside the heap. As objects there would be six for each event, and the garbage collector
 * would visit all of them again and again.
 */
export class Entries {
  readonly #line: string;
  // The number of slots is always a power of two, so a mask can wrap an index.
  #numbers = new Float64Array(firstSlots * width);
  #references = new Array<References | undefined>(firstSlots).fill(undefined);
  #oldest = 0;
  #size = 0;

  /** @param line - the id of the line that the events are in */
  constructor(line: string) {
    this.#line = line;
  }

  get size(): number {
    return this.#size;
  }

  /** @param time - of the event, in epoch ms */
  push({ state, shared, ...place }: Checkpoint, time: number, { block, ...line }: Line): void {
    if (this.#size === this.#references.length) this.#grow();
    const slot = this.#slotOf(this.#size);
    const before = this.#references[this.#slotOf(this.#size - 1)];
    const isSame = before?.state === state && before.shared === shared && before.block === block;
    this.#references[slot] = isSame ? before : { state, shared, block };
    this.#numbers[slot * width + column.offset] = place.offset;
    this.#numbers[slot * width + column.frames] = place.frames;
    this.#numbers[slot * width + column.at] = place.at;
    this.#numbers[slot * width + column.complete] = place.complete;
    this.#numbers[slot * width + column.watermark] = place.watermark;
    this.#numbers[slot * width + column.written] = place.written;
    this.#numbers[slot * width + column.earliest] = time;
    this.#numbers[slot * width + column.from] = line.from;
    this.#numbers[slot * width + column.to] = line.to;
    this.#size += 1;
    // A clock is seldom set back, so this seldom finds one.
    for (let index = this.#size - 2; index >= 0 && this.earliestFrom(index) > time; index -= 1)
      this.#numbers[this.#slotOf(index) * width + column.earliest] = time;
  }

  removeOldest(): void {
    this.#references[this.#oldest] = undefined;
    this.#oldest = this.#slotOf(1);
    this.#size -= 1;
  }

  checkpointAfter(index: number): Checkpoint {
    const { state, shared } = this.#referencesOf(index);
    return {
      line: this.#line,
      gen: 0,
      offset: this.#number(index, column.offset),
      frames: this.#number(index, column.frames),
      holes: 0,
      at: this.#number(index, column.at),
      complete: this.#number(index, column.complete),
      state,
      watermark: this.#number(index, column.watermark),
      shared,
      written: this.writtenAfter(index),
    };
  }

  writtenAfter(index: number): number {
    return this.#number(index, column.written);
  }

  /** Returns the earliest time of an event and all later ones. Never decreases with the index, so a search can halve. */
  earliestFrom(index: number): number {
    return this.#number(index, column.earliest);
  }

  blockOf(index: number): Buffer {
    return this.#referencesOf(index).block;
  }

  lineOf(index: number): Line {
    const [from, to] = [this.#number(index, column.from), this.#number(index, column.to)];
    return { block: this.blockOf(index), from, to };
  }

  #number(index: number, of: number): number {
    return this.#numbers[this.#slotOf(index) * width + of] as number;
  }

  #referencesOf(index: number): References {
    return this.#references[this.#slotOf(index)] as References;
  }

  #slotOf(index: number): number {
    return (this.#oldest + index) & (this.#references.length - 1);
  }

  #grow(): void {
    const references = this.#references;
    const numbers = new Float64Array(2 * this.#numbers.length);
    numbers.set(this.#numbers.subarray(this.#oldest * width));
    numbers.set(this.#numbers.subarray(0, this.#oldest * width), (references.length - this.#oldest) * width);
    const inOrder = [...references.slice(this.#oldest), ...references.slice(0, this.#oldest)];
    this.#references = inOrder.concat(new Array<References | undefined>(inOrder.length).fill(undefined));
    this.#numbers = numbers;
    this.#oldest = 0;
  }
}
