import { randomBytes } from 'node:crypto';
import { SizedQueue } from '../operators/bounded/ring.js';
import { EventTime } from '../operators/items/event-time.js';
import { isLifecycle, timeOf } from '../operators/items/item.js';
import { isWritable, writeFrame } from '../operators/node/write-frame.js';
import { writeEventLine } from '../protocol/event-line.js';
import type { RelayedEvent, Stopped, Watermark } from '../protocol/event.js';
import {
  afterEvent,
  afterFrame,
  afterTime,
  type FeedState,
  isOfRelay,
  type LoggedValue,
  noFeed,
} from '../protocol/feed-state.js';
import { type AnyFrame, Frame, LazyFrame } from '../protocol/frame.js';
import { isAfter, type Place, startOf } from '../protocol/place.js';
import { isBytes, isTime } from '../protocol/type-guards.js';
import { type Checkpoint, Entries } from './entries.js';
import { publicEvent } from './public-json.js';
import { dataIn } from './relay-message.js';

/** An event in a relay's log. If the feed stops, the relay logs `disconnected`, because its clients stay connected. */
export type LoggedEvent = Exclude<RelayedEvent, Stopped> | LoggedValue;

/** Consecutive events, with the checkpoint and the watermark after them. */
export interface Batch {
  /** JSON lines in the format of `dataFields`. Valid until the log stores another event, which may overwrite them. */
  readonly fields: readonly Buffer[];
  readonly end: Checkpoint;
  readonly watermark: number;
}

/** See `RelayOptions`. */
export interface LogBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
  readonly maxReplayBytes: number;
}

/** A batch ends at this size, which limits the memory a client needs on top of the log. */
const maxBatchBytes = 64 * 1024;

/** Blocks have this size, unless a single line is longer. After its last line is removed, a block is used again. */
const blockBytes = 64 * 1024;

/**
 * Stores the newest events as the lines that clients receive, and finds positions by number and by time (epoch ms).
 * Lines live in blocks outside the heap: the garbage collector would copy strings twice.
 */
export class EventLog {
  /** The id of its line, which ends with the relay. The `_` tells it from those of clusters and logs. */
  readonly line = `_${randomBytes(6).toString('hex')}`;
  readonly clock: () => number;
  readonly #bounds: LogBounds;
  readonly #time: EventTime;
  readonly #entries = new Entries(this.line);
  /** The position before the oldest event. */
  #oldest: Checkpoint;
  #newest: Checkpoint;
  #block: Buffer = noBlock;
  #used = 0;
  /** A block without lines: memory that's new to the process costs more than to write the lines. */
  #spare: Buffer | undefined;
  #endedAt: number | undefined;
  /** Frames that aren't stored yet: see {@link EventLog.append}. */
  readonly #waiting = new SizedQueue<WaitingFrame>();
  // Most clients are at the same position and share this batch.
  #lastRead: { readonly from: number; readonly newest: Checkpoint; readonly batch: Batch } | undefined;

  constructor(bounds: LogBounds, clock: () => number) {
    this.#bounds = bounds;
    this.clock = clock;
    this.#time = new EventTime(clock);
    this.#oldest = this.#newest = firstOf(this.line, clock());
  }

  get oldest(): Checkpoint {
    this.#storeWaiting();
    return this.#oldest;
  }

  get newest(): Checkpoint {
    this.#storeWaiting();
    return this.#newest;
  }

  get size(): number {
    this.#storeWaiting();
    return this.#entries.size;
  }

  get bytes(): number {
    this.#storeWaiting();
    return this.#newest.written - this.#oldest.written;
  }

  /**
   * Adds an event, with the public version of its failure. Watermarks aren't stored, but they set those of batches and
   * positions.
   *
   * A frame waits until the log is read: storing some frames in a row is cheaper than storing each one when it arrives,
   * because the other tasks of the event loop replace our code in the caches of the CPU.
   *
   * @param shared - the place of the source after the event
   * @throws TypeError for a time that isn't finite, because JSON has no such number
   */
  append(added: LoggedEvent, shared?: Place): void {
    if (added.type === 'frame' && canWait(added)) {
      this.#time.receive(added, added.receivedAt);
      const waiting = this.#waiting;
      waiting.push({ frame: added, bytes: added.byteLength, shared, watermark: this.#time.known() });
      if (waiting.bytes >= maxBatchBytes || waiting.size >= mostWaiting) this.#storeWaiting();
      return;
    }
    this.#storeWaiting();
    const event = publicEvent(added);
    // Throws for a bad event before any state changes.
    const line = lineOf(event);
    const time = event.type === 'value' ? event.at : (timeOf(event) ?? this.#newest.at);
    this.#time.receive(event, time);
    if (event.type !== 'watermark') this.#store(event, line, time, this.#time.known(), shared);
  }

  #storeWaiting(): void {
    let next: WaitingFrame | undefined;
    while ((next = this.#waiting.shift()) !== undefined)
      this.#store(next.frame, writeFrame(next.frame), next.frame.receivedAt, next.watermark, next.shared);
  }

  #store(
    event: Exclude<LoggedEvent, Watermark>,
    line: string,
    time: number,
    watermark: number,
    shared: Place | undefined,
  ): void {
    // The first event can be older than the log itself: the source may lag, or be a log.
    if (this.#newest.offset === 0) this.#oldest = this.#newest = firstOf(this.line, Math.min(this.#newest.at, time));
    const { offset, frames, at, complete, state, written } = this.#newest;
    const from = this.#write(`${linePrefix}${line}\n`);
    this.#newest = {
      line: this.line,
      gen: 0,
      offset: offset + 1,
      frames: frames + (event.type === 'frame' || event.type === 'value' ? 1 : 0),
      holes: 0,
      at: Math.max(at, time),
      complete: completeAfter(complete, state, event),
      state: stateAfter(event.type === 'value' ? afterTime(state, watermark) : state, event, at),
      watermark,
      shared,
      written: written + this.#used - from - fieldBytes,
    };
    this.#entries.push(this.#newest, time, { block: this.#block, from, to: this.#used });
    const { capacity, capacityBytes } = this.#bounds;
    while (this.#entries.size > capacity || this.#newest.written - this.#oldest.written > capacityBytes)
      this.#removeOldest();
  }

  #removeOldest(): void {
    const block = this.#entries.blockOf(0);
    this.#oldest = this.#entries.checkpointAfter(0);
    this.#entries.removeOldest();
    const isInUse = block === this.#block || block === this.#entries.blockOf(0);
    if (!isInUse && block.length === blockBytes) this.#spare = block;
  }

  /** The time the feed has reached. It lags the clock if the source does. */
  get timeNow(): number {
    return this.newest.offset === 0 ? this.clock() : this.#time.now();
  }

  /** The time the feed will have once it catches up, in case the connection to its relay has stalled. */
  get timeSoon(): number {
    return Math.max(this.timeNow, this.newest.offset === 0 ? -Infinity : this.#time.expected());
  }

  /** Stops the time: the source has ended. */
  end(): void {
    this.#endedAt = this.#time.now();
  }

  /**
   * Returns the watermark at a position. At the newest one it follows the clock, unless the source sends watermarks.
   */
  watermarkAt({ offset, state, watermark }: Checkpoint): number {
    if (offset !== this.newest.offset || offset === 0) return watermark;
    return this.#endedAt ?? (hasClock(state) ? this.#time.now() : this.#time.known());
  }

  /** Returns the position after `offset` events; `undefined` if it's been removed, or isn't reached yet. */
  positionAt(offset: number): Checkpoint | undefined {
    const index = offset - this.oldest.offset;
    return index < 0 || index > this.size ? undefined : this.#before(index);
  }

  /** Returns the position after the last event that isn't later than `time`. */
  positionAfter(time: number): Checkpoint {
    const entries = this.#entries;
    return this.#before(firstIndexWhere(0, this.size, (index) => entries.earliestFrom(index) > time));
  }

  /**
   * Returns the last position that isn't after a place of the source's line; `undefined` if it's been removed. A place
   * in an earlier line isn't after it.
   */
  positionUntil(of: Place): Checkpoint | undefined {
    const isLater = ({ shared }: Checkpoint) => shared !== undefined && isAfter(shared, of) === true;
    const index = firstIndexWhere(0, this.size + 1, (n) => isLater(this.#before(n)));
    return index === 0 ? undefined : this.#before(index - 1);
  }

  /** Returns the oldest position a client may join at: `maxReplayBytes` before the newest, at most. */
  replayStart(): Checkpoint {
    // Reading the size stores the frames that wait.
    const { size } = this;
    const from = this.#newest.written - this.#bounds.maxReplayBytes;
    return this.#before(firstIndexWhere(0, size, (n) => this.#before(n).written >= from));
  }

  /** Returns the time of a position. No later event is earlier, even if a clock was set back. */
  timeAt({ offset, at }: Checkpoint): number {
    return Math.min(at, this.earliestAfter(offset));
  }

  earliestAfter(offset: number): number {
    const index = Math.max(0, offset - this.oldest.offset);
    return index < this.size ? this.#entries.earliestFrom(index) : Infinity;
  }

  /** Returns whether the event before a stored position is a gap. */
  isGap({ offset }: Checkpoint): boolean {
    return linesOf(this.#batchAfter(offset - 1, 0)).startsWith('{"type":"gap"');
  }

  /** Returns the next events after a stored position; `undefined` at the end. */
  read({ offset }: Checkpoint): Batch | undefined {
    const { newest } = this;
    if (offset === newest.offset) return undefined;
    if (this.#lastRead?.from !== offset || this.#lastRead.newest !== newest)
      this.#lastRead = { from: offset, newest, batch: this.#batchAfter(offset, maxBatchBytes) };
    return this.#lastRead.batch;
  }

  /** Returns the first event after a stored position; `undefined` at the end. */
  readOne({ offset }: Checkpoint): Batch | undefined {
    return offset === this.newest.offset ? undefined : this.#batchAfter(offset, 0);
  }

  #batchAfter(offset: number, maxBytes: number): Batch {
    const entries = this.#entries;
    const first = offset - this.oldest.offset;
    const before = this.#before(first).written;
    let { block, from, to } = entries.lineOf(first);
    const fields: Buffer[] = [];
    let last = first;
    while (last + 1 < entries.size && entries.writtenAfter(last) - before < maxBytes) {
      last += 1;
      const line = entries.lineOf(last);
      if (line.block !== block) {
        fields.push(block.subarray(from, to));
        ({ block, from } = line);
      }
      ({ to } = line);
    }
    fields.push(block.subarray(from, to));
    const end = this.#before(last + 1);
    return { fields, end, watermark: this.watermarkAt(end) };
  }

  /** Writes the field of a line into the block, or into a new one. Returns where it begins. */
  #write(field: string): number {
    const bytes = Buffer.byteLength(field);
    if (this.#used + bytes > this.#block.length) {
      const isLong = bytes > blockBytes;
      this.#block = isLong ? Buffer.allocUnsafeSlow(bytes) : (this.#spare ?? Buffer.allocUnsafeSlow(blockBytes));
      if (!isLong) this.#spare = undefined;
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += this.#block.write(field, from);
    return from;
  }

  /** Returns the position before an event; for the number of events, the newest one. */
  #before(index: number): Checkpoint {
    if (index === this.#entries.size) return this.#newest;
    return index === 0 ? this.#oldest : this.#entries.checkpointAfter(index - 1);
  }
}

/** How many frames can wait at most. */
const mostWaiting = 64;

interface WaitingFrame {
  readonly frame: AnyFrame;
  readonly bytes: number;
  readonly shared: Place | undefined;
  /** The watermark after it. */
  readonly watermark: number;
}

/** Returns whether {@link writeFrame} can't throw for a frame later: it's one of ours, with valid fields. */
const canWait = (frame: AnyFrame): boolean =>
  (frame instanceof LazyFrame || (frame.constructor === Frame && isBytes(frame.data))) && isWritable(frame);

const noBlock = Buffer.alloc(0);

const firstOf = (line: string, at: number): Checkpoint => ({
  ...startOf(line, 0, at),
  state: noFeed,
  watermark: -Infinity,
  shared: undefined,
  written: 0,
});

// A line contains no newline, so it's one field of `dataFields`.
const linePrefix = 'data: ';
const fieldBytes = linePrefix.length + 1;

export const linesOf = ({ fields }: Pick<Batch, 'fields'>): string => dataIn(Buffer.concat(fields).toString());

/** Binary search for the first index that matches, or `end`. Every index after the first match must match as well. */
const firstIndexWhere = (begin: number, end: number, matches: (index: number) => boolean): number => {
  let [from, until] = [begin, end];
  while (from < until) {
    const middle = (from + until) >>> 1;
    if (matches(middle)) until = middle;
    else from = middle + 1;
  }
  return from;
};

// Before the first connection the clock proves nothing: the source may be a relay whose first events are older.
export const hasClock = ({ events, open, hasOpened, outage }: FeedState): boolean =>
  events.length === 0 || open !== undefined || (hasOpened && outage?.isOlder !== true);

// Values don't change the state: during an outage they're the delayed output of an operator.
export const stateAfter = (state: FeedState, event: RelayedEvent | LoggedValue, newestAt: number): FeedState => {
  if (event.type === 'frame') return afterFrame(state, event.receivedAt, event);
  return isLifecycle(event) ? afterEvent(state, event, newestAt) : state;
};

/**
 * Returns the time up to which a subscriber has every frame after an event, in epoch ms. Only frames, and gaps in their
 * place, prove it, because the clock runs on while a connection is stalled. During an outage it stays at the end of the
 * last open connection.
 *
 * @param complete - that time before the event, when the feed was in this state
 */
export const completeAfter = (complete: number, state: FeedState, event: LoggedEvent): number =>
  Math.max(complete, provenUntil(state, event) ?? complete);

const provenUntil = (state: FeedState, event: LoggedEvent): number | undefined => {
  const isCompleteAt = (at: number): boolean => {
    const { open, settling } = afterTime(state, at);
    return open !== undefined && settling === undefined;
  };
  switch (event.type) {
    case 'frame':
      // With a fixed `deliveryDelayMs`, others may be missing between this one and the last.
      return state.settling?.isFixed === true && event.receivedAt < state.settling.until ? undefined : event.receivedAt;
    case 'gap':
      return event.to;
    case 'value':
      // During an outage, a value is an operator's delayed output for earlier frames.
      return isCompleteAt(event.at) || state.events.length === 0 ? event.at : undefined;
    case 'opened':
      return state.hasOpened ? undefined : event.at;
    case 'disconnected': {
      const { failure, at } = event;
      const endedAt = Math.min(failure.endedAt, at);
      // When the connection to a relay ends, the relay may still hold frames that it hasn't sent.
      const isOfFeed = failure.stage === 'stream' && !isOfRelay({ failure, hasStopped: false });
      return isOfFeed && isCompleteAt(endedAt) ? endedAt : undefined;
    }
    case 'reconnecting':
    case 'ticket-requested':
    case 'ticket-issued':
    case 'watermark':
      return undefined;
  }
};

const lineOf = (event: LoggedEvent): string => {
  if (event.type === 'frame') return writeFrame(event);
  const times = event.type === 'gap' ? [event.from, event.to, event.durationMs] : [event.at as number | undefined];
  if (times.every((time) => time === undefined || isTime(time))) return writeEventLine(event);
  // JSON has no such number, and `Infinity` would stop the time of the log.
  throw new TypeError(
    `A \`${event.type}\` event can't be sent, because its time isn't a finite number. Set its time in epoch ms.`,
  );
};
