import { randomBytes } from 'node:crypto';
import { Ring } from '../operators/bounded/ring.js';
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
import { type Checkpoint, Chunk, watermarkAfter } from './chunk.js';
import { LineMemory } from './line-memory.js';
import { publicEvent } from './public-json.js';
import { dataIn } from './relay-message.js';

/** An event in a relay's log: the public version. */
export type LoggedEvent = Exclude<RelayedEvent, Stopped> | LoggedValue;

/** Consecutive events, with the checkpoint and the watermark after them. */
export interface Batch {
  /** JSON lines, each a `lineField`. */
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

/** How many frames can wait at most. */
const mostWaiting = 64;

interface WaitingFrame {
  readonly frame: AnyFrame;
  /** The place of the source after it. */
  readonly place: Place | undefined;
}

/**
 * Stores the newest events as the lines that clients receive, and finds positions by number and by time (epoch ms).
 */
export class EventLog {
  /** The id of its line, which ends with the relay. The `_` tells it from those of clusters and logs. */
  readonly line = `_${randomBytes(6).toString('hex')}`;
  readonly clock: () => number;
  readonly bounds: LogBounds;
  readonly #time: EventTime;
  readonly #chunks = new Ring<Chunk>();
  /** How many events of the oldest chunk are removed. */
  #removed = 0;
  #newest: Checkpoint;
  readonly memory = new LineMemory();
  #endedAt: number | undefined;
  /** Frames that aren't stored yet: see {@link EventLog.append}. */
  readonly #waiting: WaitingFrame[] = [];
  #waitingBytes = 0;

  constructor(bounds: LogBounds, clock: () => number) {
    this.bounds = bounds;
    this.clock = clock;
    this.#time = new EventTime(clock);
    this.#newest = firstOf(this.line, clock());
  }

  get oldest(): Checkpoint {
    this.#storeWaiting();
    return this.#chunks.oldest?.checkpointAfter(this.#removed) ?? this.#newest;
  }

  get newest(): Checkpoint {
    this.#storeWaiting();
    return this.#newest;
  }

  /** Returns whether no event after a position has been removed. */
  has({ offset }: Checkpoint): boolean {
    this.#storeWaiting();
    return this.#first <= offset;
  }

  get size(): number {
    return this.newest.offset - this.#first;
  }

  get bytes(): number {
    const { written } = this.newest;
    return written - (this.#chunks.oldest?.writtenAfter(this.#removed) ?? written);
  }

  /**
   * Adds an event, in its public version. Watermarks aren't stored, but they set those of batches and
   * positions.
   *
   * A frame waits until the log is read: storing some frames in a row is cheaper than storing each one when it arrives,
   * because the other tasks of the event loop replace our code in the caches of the CPU.
   *
   * @param place - that of the source after the event
   * @throws TypeError for a time that isn't finite, because JSON has no such number
   */
  append(added: RelayedEvent | LoggedValue, place?: Place): void {
    if (added.type === 'frame' && canWait(added)) {
      this.#time.receive(added, added.receivedAt);
      this.#waiting.push({ frame: added, place });
      this.#waitingBytes += added.byteLength;
      if (this.#waitingBytes >= maxBatchBytes || this.#waiting.length >= mostWaiting) this.#storeWaiting();
      return;
    }
    this.#storeWaiting();
    const event = added.type === 'frame' || added.type === 'value' ? added : publicEvent(added);
    // Throws for a bad event before any state changes.
    const line = lineOf(event);
    const time = event.type === 'value' ? event.at : (timeOf(event) ?? this.#newest.at);
    this.#time.receive(event, time);
    if (event.type !== 'watermark') this.#store(event, line, time, this.#time.known(), place);
  }

  #storeWaiting(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    const known = this.#time.known();
    for (let n = 0; n < waiting.length;) {
      const { state, watermark } = this.#newest;
      const { frame, place } = waiting[n] as WaitingFrame;
      const { receivedAt } = frame;
      if (isSteady(state)) n = this.#storeFrames(n, known);
      else {
        this.#store(frame, writeFrame(frame), receivedAt, watermarkAfter(watermark, receivedAt, known), place);
        n += 1;
      }
    }
    waiting.length = this.#waitingBytes = 0;
  }

  /** Stores frames that change no state, from index `n` on, as far as the memory goes. Returns the index after them. */
  #storeFrames(n: number, known: number): number {
    const [waiting, memory] = [this.#waiting, this.memory];
    let chunk: Chunk | undefined;
    let index = n;
    for (; index < waiting.length; index += 1) {
      const { frame, place } = waiting[index] as WaitingFrame;
      if (!memory.addFrame(frame, chunk !== undefined)) break;
      chunk ??= new Chunk(this.#newest, memory.block, memory.begin);
      chunk.add(memory.end, frame.receivedAt, place);
    }
    if (chunk !== undefined) this.#add(chunk, chunk.afterFrames(chunk.size, known));
    return index;
  }

  #store(
    event: Exclude<LoggedEvent, Watermark>,
    line: string,
    time: number,
    watermark: number,
    shared: Place | undefined,
  ): void {
    // The first event can be older than the log itself: the source may lag, or be a log.
    if (this.#newest.offset === 0) this.#newest = firstOf(this.line, Math.min(this.#newest.at, time));
    const before = this.#newest;
    const { offset, frames, at, complete, state } = before;
    this.memory.add(line, false);
    const chunk = new Chunk(before, this.memory.block, this.memory.begin);
    chunk.add(this.memory.end, time, shared);
    this.#add(chunk, {
      ...before,
      offset: offset + 1,
      frames: frames + (event.type === 'frame' || event.type === 'value' ? 1 : 0),
      at: Math.max(at, time),
      complete: completeAfter(complete, state, event),
      state: stateAfter(event.type === 'value' ? afterTime(state, watermark) : state, event, at),
      watermark,
      shared,
      written: chunk.writtenAfter(1),
    });
  }

  #add(chunk: Chunk, end: Checkpoint): void {
    chunk.end = end;
    const chunks = this.#chunks;
    // A clock is seldom set back, so this seldom finds one.
    for (let index = chunks.size - 1; index >= 0 && chunks.at(index).isBefore(chunk.earliest); index -= 1);
    chunks.push(chunk);
    this.#newest = end;
    this.#removeOldest(end.offset - this.bounds.capacity, end.written - this.bounds.capacityBytes);
  }

  /** The offset of the oldest event. */
  get #first(): number {
    const { oldest } = this.#chunks;
    return oldest === undefined ? this.#newest.offset : oldest.before.offset + this.#removed;
  }

  /** Removes the events before an offset, and those that begin before so many bytes of all lines. */
  #removeOldest(offset: number, written: number): void {
    let chunk = this.#chunks.oldest;
    while (
      chunk !== undefined &&
      (chunk.before.offset + this.#removed < offset || chunk.writtenAfter(this.#removed) < written)
    ) {
      this.#removed += 1;
      if (this.#removed < chunk.size) continue;
      this.#removed = 0;
      this.#chunks.shift();
      chunk = this.#chunks.oldest;
    }
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
    const { newest } = this;
    if (offset < this.#first || offset > newest.offset) return undefined;
    if (offset === newest.offset) return newest;
    const [index, count] = this.#find(offset);
    return this.#chunks.at(index).checkpointAfter(count);
  }

  /** Returns the position after the last event that isn't later than `time`. */
  positionAfter(time: number): Checkpoint {
    return this.#firstWhere(
      (chunk) => chunk.earliest > time,
      (chunk, count, later) => chunk.earliestAfter(count, later) > time,
    );
  }

  /**
   * Returns the last position that isn't after a place of the source's line; `undefined` if it's been removed. A place
   * in an earlier line isn't after it.
   */
  positionUntil(of: Place): Checkpoint | undefined {
    const isLater = (place: Place | undefined) => place !== undefined && isAfter(place, of) === true;
    if (isLater(this.oldest.shared)) return undefined;
    return this.#firstWhere(
      (chunk) => isLater(chunk.placeAfter(1)),
      (chunk, count) => isLater(chunk.placeAfter(count + 1)),
    );
  }

  /** Returns the oldest position a client may join at: `maxReplayBytes` before the newest, at most. */
  replayStart(): Checkpoint {
    const from = this.newest.written - this.bounds.maxReplayBytes;
    return this.#firstWhere(
      (chunk) => chunk.before.written >= from,
      (chunk, count) => chunk.writtenAfter(count) >= from,
    );
  }

  /** Returns the time of a position. No later event is earlier, even if a clock was set back. */
  timeAt({ offset, at }: Checkpoint): number {
    return Math.min(at, this.earliestAfter(offset));
  }

  earliestAfter(offset: number): number {
    if (offset >= this.newest.offset) return Infinity;
    const [index, count] = this.#find(Math.max(offset, this.#first));
    return this.#chunks.at(index).earliestAfter(count, this.#earliestFrom(index + 1));
  }

  /** Returns whether the event before a stored position is a gap. */
  isGap({ offset }: Checkpoint): boolean {
    return linesOf(this.#batchAfter(offset - 1, 0)).startsWith('{"type":"gap"');
  }

  /** Returns the next events after a stored position, or with 0 bytes the first one; `undefined` at the end. */
  read({ offset }: Pick<Checkpoint, 'offset'>, maxBytes = maxBatchBytes): Batch | undefined {
    return offset === this.newest.offset ? undefined : this.#batchAfter(offset, maxBytes);
  }

  #batchAfter(offset: number, maxBytes: number): Batch {
    const newest = this.#chunks.newest as Chunk;
    // What live clients receive.
    if (newest.before.offset === offset && newest.end.written - newest.before.written <= maxBytes)
      return { fields: [newest.fields(0, newest.size)], end: newest.end, watermark: this.watermarkAt(newest.end) };
    const fields: Buffer[] = [];
    let [index, count] = this.#find(offset);
    const until = this.#chunks.at(index).writtenAfter(count) + maxBytes;
    for (;;) {
      const chunk = this.#chunks.at(index);
      let to = chunk.size;
      if (chunk.end.written > until) to = firstIndexWhere(count + 1, to, (n) => chunk.writtenAfter(n) >= until);
      fields.push(chunk.fields(count, to));
      const end = chunk.checkpointAfter(to);
      if (end.written >= until || end.offset === this.#newest.offset)
        return { fields, end, watermark: this.watermarkAt(end) };
      [index, count] = [index + 1, 0];
    }
  }

  /** Returns the chunk with the event at an offset, and how many of its events are before that. */
  #find(offset: number): readonly [index: number, count: number] {
    const chunks = this.#chunks;
    const index = firstIndexWhere(1, chunks.size, (n) => chunks.at(n).before.offset > offset) - 1;
    return [index, offset - chunks.at(index).before.offset];
  }

  #earliestFrom(index: number): number {
    return index < this.#chunks.size ? this.#chunks.at(index).earliest : Infinity;
  }

  /**
   * Returns the first stored position that matches, or the newest. Every position after the first match must match as
   * well.
   *
   * @param isAtStart - whether the position before a chunk matches
   * @param isMatch - whether the position after `count` events of a chunk matches. `later`: the earliest time after it
   */
  #firstWhere(
    isAtStart: (chunk: Chunk) => boolean,
    isMatch: (chunk: Chunk, count: number, later: number) => boolean,
  ): Checkpoint {
    this.#storeWaiting();
    const chunks = this.#chunks;
    if (chunks.size === 0) return this.#newest;
    const index = firstIndexWhere(1, chunks.size, (n) => isAtStart(chunks.at(n))) - 1;
    const [chunk, later] = [chunks.at(index), this.#earliestFrom(index + 1)];
    const count = firstIndexWhere(index === 0 ? this.#removed : 0, chunk.size, (n) => isMatch(chunk, n, later));
    return chunk.checkpointAfter(count);
  }
}

/** Returns whether a frame leaves the state as it is. */
const isSteady = (state: FeedState): boolean =>
  state.open !== undefined && state.settling === undefined && afterFrame(state, state.open.at) === state;

/** Returns whether {@link writeFrame} can't throw for a frame later: it's one of ours, with valid fields. */
const canWait = (frame: AnyFrame): boolean =>
  ((frame.constructor === Frame && isBytes(frame.data)) || frame instanceof LazyFrame) && isWritable(frame);

const firstOf = (line: string, at: number): Checkpoint => ({
  ...startOf(line, 0, at),
  state: noFeed,
  watermark: -Infinity,
  shared: undefined,
  written: 0,
});

export const linesOf = (batch: Pick<Batch, 'fields'> | undefined): string =>
  dataIn(Buffer.concat(batch?.fields ?? []).toString());

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
