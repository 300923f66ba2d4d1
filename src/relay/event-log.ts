import { writeFrame } from '../operators/node/write-frame.js';
import { EventTime } from '../operators/timing/event-time.js';
import { timeOf } from '../operators/items/item.js';
import type { Watermark } from '../protocol/event.js';
import { type FeedPosition, isAfterPosition } from '../protocol/feed-position.js';
import { writeEventLine } from '../protocol/event-line.js';
import { type LoggedEvent, nextSnapshot } from '../protocol/snapshot.js';
import { type EntryBounds, LogEntries, type Position } from './log-entries.js';
import { publicEvent } from './public-json.js';
import { TimeIndex } from './time-index.js';

/** Consecutive events, as lines of JSON. */
export interface Batch {
  readonly lines: string;
  /** The position after the last of these events. */
  readonly end: Position;
  /** No event after them is older, in epoch ms. */
  readonly watermark: number;
}

/** The limits of a log. */
export interface LogBounds extends EntryBounds {
  /** The most bytes of the log that a joining client receives. */
  readonly maxReplayBytes: number;
}

/** The text length at which a batch ends. It bounds the text that a client needs in addition to the log. */
const maxBatchLength = 64 * 1024;

/** Stores the newest events as the lines that clients receive, and finds positions by number and by time. */
export class EventLog {
  readonly #bounds: LogBounds;
  readonly #time: EventTime;
  readonly #times = new TimeIndex();
  #entries: LogEntries;
  // Most clients are at the same position, so they share one batch.
  #lastRead: { readonly seq: number; readonly newest: Position; readonly batch: Batch } | undefined;

  /** @param clock - returns the time in epoch ms */
  constructor(bounds: LogBounds, clock: () => number) {
    this.#bounds = bounds;
    this.#time = new EventTime(clock);
    this.#entries = new LogEntries(bounds, {
      ...{ seq: 0, frames: 0, at: clock(), snapshot: [], watermark: -Infinity, shared: undefined },
    });
  }

  /** The position before the oldest stored event. */
  get oldest(): Position {
    return this.#entries.oldest;
  }

  /** The position after the newest event. */
  get newest(): Position {
    return this.#entries.newest;
  }

  /** The number of stored events. */
  get size(): number {
    return this.#entries.size;
  }

  /** The bytes of the stored lines in memory. */
  get bytes(): number {
    return this.#entries.bytes;
  }

  /**
   * Adds an event. Clients receive it, so its failure is replaced by its public version. A watermark of the source is not stored: it sets the
   * watermarks of batches and positions.
   *
   * @param shared - the position of a cluster after the event
   * @throws TypeError for an event with a time that is not a finite number, because JSON has no such number
   */
  append(added: LoggedEvent, shared?: FeedPosition): void {
    const event = publicEvent(added);
    const time = event.type === 'value' ? event.at : (timeOf(event) ?? this.newest.at);
    checkTimes(event, time);
    this.#time.receive(event, time);
    if (event.type === 'watermark') return;
    if (this.newest.seq === 0) this.#startBefore(time);
    const { seq, frames, snapshot, at } = this.newest;
    this.#entries.add(lineOf(event), {
      seq: seq + 1,
      frames: frames + (event.type === 'frame' || event.type === 'value' ? 1 : 0),
      at: Math.max(at, time),
      snapshot: nextSnapshot(snapshot, event),
      watermark: this.#time.known(),
      shared,
    });
    this.#times.add(seq + 1, time);
    this.#times.dropUntil(this.oldest.seq);
  }

  /** Returns the time from which a client that joins now receives every event, in epoch ms. It is before `now` if the source is late. */
  joinedAt(now: number): number {
    return this.#time.isWithoutClock ? this.#time.known() : now;
  }

  /** Returns the time that the feed has reached, in epoch ms. */
  timeNow(now: number): number {
    return this.newest.seq === 0 ? now : this.#time.now();
  }

  /** Returns the watermark of a position, in epoch ms. At the newest position it follows the clock, unless the source sends watermarks. */
  watermarkAt({ seq, watermark }: Position): number {
    return seq === this.newest.seq && seq > 0 ? this.#time.now() : watermark;
  }

  /** Returns the position after `seq` events; `undefined` if it is removed, or not reached yet. */
  positionAt(seq: number): Position | undefined {
    return this.#entries.positionAt(seq);
  }

  /** Returns the position after the last event that is not later than `time`, in epoch ms. All events after the position are later. */
  positionAfter(time: number): Position {
    const seq = this.#times.lastUntil(time);
    return (seq === undefined ? undefined : this.positionAt(seq)) ?? this.oldest;
  }

  /**
   * Returns the last position that is not after a position of the cluster; `undefined` if it is removed.
   *
   * A position of another store or owner that has the same number is not after it.
   */
  positionUntil(shared: FeedPosition): Position | undefined {
    return this.#entries.lastWhere(
      (each) => each.shared === undefined || isAfterPosition(each.shared, shared) !== true,
    );
  }

  /** Returns the oldest position from which a joining client may receive every event: at most `maxReplayBytes`. */
  replayStart(): Position {
    return this.#entries.positionBeforeLast(this.#bounds.maxReplayBytes);
  }

  /** Returns the time of a position, in epoch ms: no event after it is earlier, also if a clock was set back. */
  timeAt({ seq, at }: Position): number {
    return Math.min(at, this.earliestAfter(seq));
  }

  /** Returns the earliest time of the events after a position, in epoch ms; `Infinity` if there are none. */
  earliestAfter(seq: number): number {
    return this.#times.earliestAfter(seq);
  }

  /** Returns whether the event before a stored position is a gap. */
  isGap({ seq }: Position): boolean {
    return this.#entries.after(seq - 1).line.startsWith('{"type":"gap"');
  }

  /** Returns the next events after a position; `undefined` if there are none. The position must be stored. */
  read({ seq }: Position): Batch | undefined {
    if (seq === this.newest.seq) return undefined;
    if (this.#lastRead?.seq !== seq || this.#lastRead.newest !== this.newest)
      this.#lastRead = { seq, newest: this.newest, batch: this.#batchAfter(seq, maxBatchLength) };
    return this.#lastRead.batch;
  }

  /** Returns the first event after a position; `undefined` if there is none. The position must be stored. */
  readOne({ seq }: Position): Batch | undefined {
    return seq === this.newest.seq ? undefined : this.#batchAfter(seq, 0);
  }

  #batchAfter(seq: number, maxLength: number): Batch {
    let end = this.#entries.after(seq);
    let lines = end.line;
    while (end.seq < this.newest.seq && lines.length < maxLength) {
      end = this.#entries.after(end.seq);
      lines += `\n${end.line}`;
    }
    return { lines, end, watermark: this.watermarkAt(end) };
  }

  // The first event of a late source, or of a recording, is older than the log.
  #startBefore(time: number): void {
    this.#entries = new LogEntries(this.#bounds, { ...this.oldest, at: Math.min(this.oldest.at, time) });
  }
}

// Runs before any state changes: clients could not read the line, and after `Infinity` the time of the log could not move.
const checkTimes = (event: LoggedEvent, time: number): void => {
  const times = event.type === 'gap' ? [time, event.from, event.durationMs] : [time];
  if (!times.every(Number.isFinite))
    throw new TypeError(
      `An event of the type ${event.type} has a time that is not a finite number, so it cannot be sent. Set its time in epoch ms.`,
    );
};

const lineOf = (event: Exclude<LoggedEvent, Watermark>): string =>
  event.type === 'frame' ? writeFrame(event) : writeEventLine(event);
