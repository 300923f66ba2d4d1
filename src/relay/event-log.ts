import type { SchedulerLike } from 'rxjs';
import { Ring } from '../operators/bounded/ring.js';
import { EventTime } from '../operators/items/event-time.js';
import { isLifecycle, timeOf } from '../operators/items/item.js';
import { writeFrame } from '../operators/node/write-frame.js';
import { writeEventLine } from '../protocol/event-line.js';
import type { RelayedEvent } from '../protocol/event.js';
import {
  afterEvent,
  afterItem,
  completeAfter,
  type FeedState,
  type LoggedEvent,
  type LoggedValue,
  noFeed,
} from '../protocol/feed-state.js';
import { type FeedPosition, isAfterPosition } from '../protocol/position.js';
import { isTime } from '../protocol/type-guards.js';
import { publicEvent } from './public-json.js';
import { dataIn } from './relay-message.js';

/** A position between two events of a log. Times are in epoch ms. */
export interface Position {
  /** The number of events before it. */
  readonly seq: number;
  /** The number of frames before it; for a topic, the values count too. */
  readonly frames: number;
  /** The latest time of the events before it. It never decreases. */
  readonly at: number;
  /** A client at this position has every frame up to this time. */
  readonly complete: number;
  readonly state: FeedState;
  /** No event after the position is older. `-Infinity` before the first event. */
  readonly watermark: number;
  /** The position in the feed of a cluster; `undefined` without a cluster, and before its first event. */
  readonly shared: FeedPosition | undefined;
}

/** Consecutive events, and the position and the watermark after them. */
export interface Batch {
  /** Lines of JSON in the format of `dataFields`. */
  readonly fields: readonly Buffer[];
  readonly end: Position;
  readonly watermark: number;
}

/** See `RelayOptions`. */
export interface LogBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
  readonly maxReplayBytes: number;
}

/** The size at which a batch ends. It bounds the bytes that a client needs in addition to the log. */
const maxBatchBytes = 64 * 1024;

/** The size of a block, unless a line is longer. A block is freed with its last line. */
const blockBytes = 64 * 1024;

/**
 * Stores the newest events as the lines that clients receive, and finds positions by number and by time (epoch ms). The
 * lines are in blocks outside the heap, because the garbage collector would copy each string twice.
 */
export class EventLog {
  readonly clock: () => number;
  readonly #bounds: LogBounds;
  readonly #time: EventTime;
  readonly #entries = new Ring<Entry>();
  /** The last removed entry, without its block, so that this can be freed. */
  #removed: Pick<Entry, 'end' | 'written'>;
  #block = Buffer.alloc(0);
  #used = 0;
  #endedAt: number | undefined;
  // Most clients are at the same position, so they share one batch.
  #lastRead: { readonly from: number; readonly newest: Position; readonly batch: Batch } | undefined;

  constructor(bounds: LogBounds, clock: () => number) {
    this.#bounds = bounds;
    this.clock = clock;
    this.#time = new EventTime(clock);
    const at = clock();
    const end = { seq: 0, frames: 0, at, complete: at, state: noFeed, watermark: -Infinity, shared: undefined };
    this.#removed = { end, written: 0 };
  }

  get oldest(): Position {
    return this.#removed.end;
  }

  get newest(): Position {
    return this.#before(this.size).end;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#before(this.size).written - this.#removed.written;
  }

  /**
   * Adds an event, with the public version of its failure. A watermark of the source is not stored: it sets the
   * watermarks of batches and positions.
   *
   * @param shared - the position of a cluster after the event
   * @throws TypeError for a time that is not a finite number, because JSON has no such number
   */
  append(added: LoggedEvent, shared?: FeedPosition): void {
    const event = publicEvent(added);
    // Checks the event, before any state changes.
    const line = lineOf(event);
    const { newest } = this;
    const time = event.type === 'value' ? event.at : (timeOf(event) ?? newest.at);
    this.#time.receive(event, time);
    if (event.type === 'watermark') return;
    // The first event of a late source, or of a log, is older than the log.
    const startAt = Math.min(newest.at, time);
    if (newest.seq === 0) this.#removed = { ...this.#removed, end: { ...this.oldest, at: startAt, complete: startAt } };
    const { seq, frames, at, complete, state } = this.newest;
    this.#add(line, time, {
      seq: seq + 1,
      frames: frames + (event.type === 'frame' || event.type === 'value' ? 1 : 0),
      at: Math.max(at, time),
      complete: completeAfter(complete, state.events, event),
      state: stateAfter(state, event, at),
      watermark: this.#time.known(),
      shared,
    });
  }

  /** The time that the feed has reached. It is before that of the clock if the source is late. */
  get timeNow(): number {
    return this.newest.seq === 0 ? this.clock() : this.#time.now();
  }

  /** The time that the feed reaches once it catches up: the connection to its relay may have stalled. */
  get timeSoon(): number {
    return Math.max(this.timeNow, this.newest.seq === 0 ? -Infinity : this.#time.expected());
  }

  /** The source has ended: the clock moves the time no further. */
  end(): void {
    this.#endedAt = this.#time.now();
  }

  /**
   * Returns the watermark of a position. At the newest one it follows the clock, unless the source sends watermarks.
   */
  watermarkAt({ seq, state, watermark }: Position): number {
    if (seq !== this.newest.seq || seq === 0) return watermark;
    // Before the first connection the clock proves nothing: the source may be a relay, whose first events are older.
    const hasClock = state.events.length === 0 || state.hasOpened;
    return this.#endedAt ?? (hasClock ? this.#time.now() : this.#time.known());
  }

  /** Returns the position after `seq` events; `undefined` if it is removed, or not reached yet. */
  positionAt(seq: number): Position | undefined {
    const index = seq - this.oldest.seq;
    return index < 0 || index > this.size ? undefined : this.#before(index).end;
  }

  /** Returns the position after the last event that is not later than `time`. */
  positionAfter(time: number): Position {
    let index = this.size;
    // No binary search, because times may decrease: a clock can be set back.
    while (index > 0 && this.#entries.at(index - 1).time > time) index -= 1;
    return this.#before(index).end;
  }

  /**
   * Returns the last position that is not after a position of the cluster; `undefined` if it is removed. A position of
   * another store or owner that has the same number is not after it.
   */
  positionUntil(of: FeedPosition): Position | undefined {
    const isAfter = ({ shared }: Position) => shared !== undefined && isAfterPosition(shared, of) === true;
    const index = firstIndexWhere(0, this.size + 1, (n) => isAfter(this.#before(n).end));
    return index === 0 ? undefined : this.#before(index - 1).end;
  }

  /** Returns the oldest position from which a joining client may receive every event: at most `maxReplayBytes`. */
  replayStart(): Position {
    const from = this.#before(this.size).written - this.#bounds.maxReplayBytes;
    return this.#before(firstIndexWhere(0, this.size, (n) => this.#before(n).written >= from)).end;
  }

  /** Returns the time of a position: no event after it is earlier, also if a clock was set back. */
  timeAt({ seq, at }: Position): number {
    return Math.min(at, this.earliestAfter(seq));
  }

  earliestAfter(seq: number): number {
    let earliest = Infinity;
    for (let index = this.size; index > seq - this.oldest.seq; index -= 1)
      earliest = Math.min(earliest, this.#entries.at(index - 1).time);
    return earliest;
  }

  /** Whether the event before a stored position is a gap. */
  isGap({ seq }: Position): boolean {
    return linesOf(this.#batchAfter(seq - 1, 0)).startsWith('{"type":"gap"');
  }

  /** Returns the next events after a position, which must be stored; `undefined` if there are none. */
  read({ seq }: Position): Batch | undefined {
    const { newest } = this;
    if (seq === newest.seq) return undefined;
    if (this.#lastRead?.from !== seq || this.#lastRead.newest !== newest)
      this.#lastRead = { from: seq, newest, batch: this.#batchAfter(seq, maxBatchBytes) };
    return this.#lastRead.batch;
  }

  /** Returns the first event after a position, which must be stored; `undefined` if there is none. */
  readOne({ seq }: Position): Batch | undefined {
    return seq === this.newest.seq ? undefined : this.#batchAfter(seq, 0);
  }

  #batchAfter(seq: number, maxBytes: number): Batch {
    const before = this.#before(seq - this.oldest.seq).written;
    let entry = this.#after(seq);
    let { from } = entry;
    const fields: Buffer[] = [];
    while (entry.end.seq < this.newest.seq && entry.written - before < maxBytes) {
      const next = this.#after(entry.end.seq);
      if (next.block !== entry.block) {
        fields.push(entry.block.subarray(from, entry.to));
        ({ from } = next);
      }
      entry = next;
    }
    fields.push(entry.block.subarray(from, entry.to));
    return { fields, end: entry.end, watermark: this.watermarkAt(entry.end) };
  }

  #add(line: string, time: number, end: Position): void {
    const field = `${linePrefix}${line}\n`;
    const bytes = Buffer.byteLength(field);
    if (this.#used + bytes > this.#block.length) {
      this.#block = Buffer.allocUnsafeSlow(Math.max(bytes, blockBytes));
      this.#used = 0;
    }
    const from = this.#used;
    const to = (this.#used += this.#block.write(field, from));
    const written = this.#before(this.size).written + bytes - fieldBytes;
    this.#entries.push({ end, time, block: this.#block, from, to, written });
    while (this.size > this.#bounds.capacity || this.bytes > this.#bounds.capacityBytes) {
      const { end: removed, written: until } = this.#entries.shift() as Entry;
      this.#removed = { end: removed, written: until };
    }
  }

  #after(seq: number): Entry {
    return this.#entries.at(seq - this.oldest.seq);
  }

  #before(index: number): Pick<Entry, 'end' | 'written'> {
    return index === 0 ? this.#removed : this.#entries.at(index - 1);
  }
}

/** A stored event, and the position after it. */
interface Entry {
  readonly end: Position;
  /** In epoch ms. */
  readonly time: number;
  /** Where its line is: the bytes of `dataFields`. */
  readonly block: Buffer;
  readonly from: number;
  readonly to: number;
  /** The UTF-8 bytes of this line and of all lines before it, also of removed ones. */
  readonly written: number;
}

// A line has no newline, so it is one field of `dataFields`.
const linePrefix = 'data: ';
const fieldBytes = linePrefix.length + 1;

export const linesOf = ({ fields }: Pick<Batch, 'fields'>): string => dataIn(Buffer.concat(fields).toString());

/** Finds the first index that matches, by binary search: all later ones must match too. `end` if none does. */
const firstIndexWhere = (begin: number, end: number, matches: (index: number) => boolean): number => {
  let [from, until] = [begin, end];
  while (from < until) {
    const middle = (from + until) >>> 1;
    if (matches(middle)) until = middle;
    else from = middle + 1;
  }
  return from;
};

// A value changes nothing: in an outage it is the delayed output of an operator.
const stateAfter = (state: FeedState, event: RelayedEvent | LoggedValue, newestAt: number): FeedState => {
  if (event.type === 'frame') return afterItem(state, event.receivedAt, event);
  return isLifecycle(event) ? afterEvent(state, event, newestAt) : state;
};

export class FollowedSource {
  readonly time: EventTime;
  state: FeedState = noFeed;

  constructor({ scheduler }: { readonly scheduler: SchedulerLike }) {
    this.time = new EventTime(() => scheduler.now());
  }

  receive(event: RelayedEvent): void {
    const { newestAt } = this.time;
    this.state = stateAfter(this.state, event, newestAt);
    this.time.receive(event, timeOf(event) ?? newestAt);
  }
}

const lineOf = (event: LoggedEvent): string => {
  if (event.type === 'frame') return writeFrame(event);
  const times = event.type === 'gap' ? [event.from, event.to, event.durationMs] : [event.at as number | undefined];
  if (times.every((time) => time === undefined || isTime(time))) return writeEventLine(event);
  // Clients could not read the line, and after `Infinity` the time could not move.
  throw new TypeError(
    `An event of the type ${event.type} has a time that isn't a finite number, so it can't be sent. ` +
      'Set its time in epoch ms.',
  );
};
