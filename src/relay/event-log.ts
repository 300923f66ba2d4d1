import { Ring } from '../operators/bounded/ring.js';
import { writeFrame } from '../operators/node/write-frame.js';
import { EventTime } from '../operators/stream/event-time.js';
import { timeOf } from '../operators/stream/item.js';
import type { Watermark } from '../protocol/event.js';
import { writeEventLine } from '../protocol/event-line.js';
import { type LoggedEvent, nextSnapshot, type Snapshot } from '../protocol/snapshot.js';
import { publicEvent } from './public-event.js';
import { firstIndexWhere, TimeIndex } from './time-index.js';

/** A place between two events, and what is known there. */
export interface Position {
  /** How many events there were before. */
  readonly seq: number;
  /** How many of them were frames, or values of a topic. */
  readonly frames: number;
  /** The latest time of these events, in epoch ms: it never goes back from one place to the next. */
  readonly at: number;
  /** How it stood with the feed. */
  readonly present: Snapshot;
  /** No event after it is older, in epoch ms: its watermark. `-Infinity` before the first event. */
  readonly watermark: number;
}

/** Events that follow one another, as lines of JSON. */
export interface Batch {
  readonly lines: string;
  /** Right behind them. */
  readonly end: Position;
  /** No event after them is older, in epoch ms. */
  readonly watermark: number;
}

/** How much a log holds. */
export interface LogBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
  /** The most bytes that a client which joins gets out of the log. */
  readonly maxReplayBytes: number;
}

/** The most text of one batch: what is waiting for a client outside of the log is not more than this. */
const mostText = 64 * 1024;

/** Holds the newest events, each as the line that it is handed on as, and lets the oldest go. */
export class EventLog {
  readonly #bounds: LogBounds;
  readonly #time: EventTime;
  readonly #entries = new Ring<Entry>();
  readonly #times = new TimeIndex();
  #bytes = 0;
  /** The bytes of the lines that are held no more, in UTF-8. */
  #dropped = 0;
  #oldest: Position;
  #newest: Position;
  // Most clients are at the same place: what was put together for one serves the next.
  #last: { readonly seq: number; readonly newest: Position; readonly batch: Batch } | undefined;

  /** @param clock - gives the time in epoch ms */
  constructor(bounds: LogBounds, clock: () => number) {
    this.#bounds = bounds;
    this.#time = new EventTime(clock);
    this.#oldest = { seq: 0, frames: 0, at: clock(), present: [], watermark: -Infinity };
    this.#newest = this.#oldest;
  }

  /** The place before the first event that is held. */
  get oldest(): Position {
    return this.#oldest;
  }

  /** The place behind the last event. */
  get newest(): Position {
    return this.#newest;
  }

  /** How many events are held. */
  get size(): number {
    return this.#entries.size;
  }

  /** How many bytes their lines have in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Takes an event in. What is held is for clients, so its failure is made public. A watermark of the source is not held: each batch and each
   * place has its own.
   *
   * @throws TypeError for an event with a time that is not a finite number, which JSON does not have
   */
  append(given: LoggedEvent): void {
    const event = publicEvent(given);
    const time = event.type === 'value' ? event.at : (timeOf(event) ?? this.#newest.at);
    checkTimes(event, time);
    this.#time.receive(event, time);
    if (event.type === 'watermark') return;
    const line = lineOf(event);
    // A source that is late, and a recording, begin before the log was made.
    if (this.#newest.seq === 0) this.#newest = this.#oldest = { ...this.#oldest, at: Math.min(this.#oldest.at, time) };
    const { seq, frames, present, at } = this.#newest;
    const length = Buffer.byteLength(line);
    const entry: Entry = {
      seq: seq + 1,
      frames: frames + (event.type === 'frame' || event.type === 'value' ? 1 : 0),
      at: Math.max(at, time),
      present: nextSnapshot(present, event),
      watermark: this.#time.known(),
      line,
      bytes: bytesInMemory(line, length),
      written: this.#writtenBefore(this.size) + length,
    };
    this.#entries.push(entry);
    this.#times.add(entry.seq, time);
    this.#bytes += entry.bytes;
    this.#newest = entry;
    while (this.size > this.#bounds.capacity || this.#bytes > this.#bounds.capacityBytes) this.#dropOldest();
  }

  /** Gives the time from which on a client that joins now receives everything, in epoch ms: earlier than now, if the source is late. */
  joinedAt(now: number): number {
    return this.#time.isWithoutClock ? this.#time.known() : now;
  }

  /** Gives the time that the feed has reached, in epoch ms. */
  timeNow(now: number): number {
    return this.#newest.seq === 0 ? now : this.#time.now();
  }

  /** Gives the watermark of a place, in epoch ms: of the newest one by the clock, too, where the source sends no watermarks. */
  watermarkAt({ seq, watermark }: Position): number {
    return seq === this.#newest.seq && seq > 0 ? this.#time.now() : watermark;
  }

  /** Gives the place behind so many events, if it is still known. */
  positionAt(seq: number): Position | undefined {
    const index = seq - this.#oldest.seq;
    return index < 0 || index > this.size ? undefined : this.#placeBefore(index);
  }

  /** Gives the place after the last event whose time is not after `time`, in epoch ms: all that follow are later. */
  placeAfter(time: number): Position {
    const seq = this.#times.lastUntil(time);
    return (seq === undefined ? undefined : this.positionAt(seq)) ?? this.#oldest;
  }

  /** Gives the first place from which on a client that joins may get everything: `maxReplayBytes` at most. */
  replayPlace(): Position {
    const from = this.#writtenBefore(this.size) - this.#bounds.maxReplayBytes;
    return this.#placeBefore(firstIndexWhere(0, this.size, (index) => this.#writtenBefore(index) >= from));
  }

  /** Gives the latest time that is neither after the events before a place nor after those behind it, in epoch ms. */
  timeAt({ seq, at }: Position): number {
    return Math.min(at, this.earliestAfter(seq));
  }

  /** Gives the earliest time of the events after a place, in epoch ms; `Infinity` when there are none. */
  earliestAfter(seq: number): number {
    return this.#times.earliestAfter(seq);
  }

  /** Gives events from a place on; `undefined` when there are none. The place must still be known. */
  read({ seq }: Position): Batch | undefined {
    if (seq === this.#newest.seq) return undefined;
    if (this.#last?.seq !== seq || this.#last.newest !== this.#newest)
      this.#last = { seq, newest: this.#newest, batch: this.#batchFrom(seq, mostText) };
    return this.#last.batch;
  }

  /** Gives the one event behind a place; `undefined` when there is none. The place must still be known. */
  readOne({ seq }: Position): Batch | undefined {
    return seq === this.#newest.seq ? undefined : this.#batchFrom(seq, 0);
  }

  #batchFrom(seq: number, most: number): Batch {
    let index = seq - this.#oldest.seq;
    let end = this.#entries.at(index);
    let lines = end.line;
    for (index += 1; index < this.size && lines.length < most; index += 1) {
      end = this.#entries.at(index);
      lines += `\n${end.line}`;
    }
    return { lines, end, watermark: this.watermarkAt(end) };
  }

  #placeBefore(index: number): Position {
    return index === 0 ? this.#oldest : this.#entries.at(index - 1);
  }

  // The bytes of all lines before that index.
  #writtenBefore(index: number): number {
    return index === 0 ? this.#dropped : this.#entries.at(index - 1).written;
  }

  #dropOldest(): void {
    const oldest = this.#entries.shift() as Entry;
    this.#times.dropUntil(oldest.seq);
    this.#bytes -= oldest.bytes;
    this.#dropped = oldest.written;
    const { seq, frames, at, present, watermark } = oldest;
    this.#oldest = { seq, frames, at, present, watermark };
  }
}

// Before anything is changed by it. Clients could not read its line, and no time follows one that is infinite.
const checkTimes = (event: LoggedEvent, time: number): void => {
  const times = event.type === 'gap' ? [time, event.from, event.durationMs] : [time];
  if (!times.every(Number.isFinite))
    throw new TypeError(
      `An event of the type ${event.type} has a time that is not a finite number, so it cannot be sent. Give it its time in epoch ms.`,
    );
};

const lineOf = (event: Exclude<LoggedEvent, Watermark>): string =>
  event.type === 'frame' ? writeFrame(event) : writeEventLine(event);

// A text has one byte for each character, or two, if one of them needs two.
const bytesInMemory = (line: string, inUtf8: number): number =>
  inUtf8 > line.length && needsTwo.test(line) ? line.length * 2 : line.length;

const needsTwo = /[\u0100-\uffff]/;

interface Entry extends Position {
  readonly line: string;
  readonly bytes: number;
  /** The bytes of its line and of all lines before, in UTF-8. */
  readonly written: number;
}
