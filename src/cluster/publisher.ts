import { allocateSeparately, MemoryUse, movePayload } from '../frames/received-frame.js';
import type { Disconnected, LifecycleEvent } from '../protocol/event.js';
import { copyFailure } from '../protocol/failures/trade-feed-error.js';
import { type Frame, frameAt } from '../protocol/frame.js';
import { afterRecord, newLine, noLine, type Place, startOf } from '../protocol/place.js';
import type { KeyPhase } from './election/cluster-key.js';
import type { Ownership, Report } from './election/election.js';
import { timing } from './election/timing.js';
import {
  type BatchMessage,
  encode,
  encodeParts,
  frameHeadBytes,
  headBytesOf,
  type FeedHead,
  type PlainMessage,
  writeCount,
  writeFrameHead,
  writeHead,
} from './messages.js';

/** What an owner has received before its generation begins in the line. */
export type Held = Frame | LifecycleEvent;

/** How much may wait. Beyond that, the generation begins before the `end` of the previous one. */
const maxHeld = 10_000;
const maxHeldBytes = 64 * 1024 * 1024;

/**
 * Numbers an owner's frames and events, and creates the messages for its followers.
 *
 * A generation begins in the line after the `end` of the previous one, so nothing of that one is refused. Until then what
 * the owner receives waits.
 */
export class Publisher {
  /** The head of the next message. One object with plain fields, because they're read for each frame. */
  readonly #head = {
    ...{ line: notBegun, gen: 0, after: 0, began: 0, owner: '', phase: 'opening' as KeyPhase, revision: 0 },
    ...{ offset: 0, frames: 0, holes: 0, count: 0, at: 0, complete: 0, settling: 'auto' as FeedHead['settling'] },
  };
  /** Added to this owner's times, so the stream's times continue although its clock differs. */
  #shiftMs = 0;
  #hasOpened = false;
  /** Whether the `opened` of the current connection was published. */
  #isOpen = false;
  /** Why this owner has no connection. */
  #trouble: Disconnected | undefined;
  #waiting: { readonly since: number; readonly isOffered: boolean; readonly held: Held[]; bytes: number } | undefined;

  get place(): Readonly<FeedHead> {
    return this.#head;
  }

  /**
   * Sets what the next messages report. A new generation waits for {@link Publisher.begin}.
   *
   * @param isOffered - whether the previous owner offered its ownership, and so sends an `end`
   */
  report({ gen, owner, phase, revision }: Report, now: number, isOffered: boolean): void {
    const head = this.#head;
    const wasWaiting = this.#waiting !== undefined;
    if (gen !== head.gen) {
      // An open connection continues in the new generation.
      [this.#hasOpened, this.#trouble] = [this.#hasOpened && phase === 'open', undefined];
      // One that claims again before it has begun still has what waits.
      const { held = [], bytes = 0 } = this.#waiting ?? {};
      this.#waiting = { since: now, isOffered, held, bytes };
      head.line = notBegun;
    }
    this.#isOpen &&= phase === 'open';
    // One that was replaced has no connection, either, although no event says so. What waits is of before.
    if (!wasWaiting && (!this.#hasOpened || phase !== 'open')) this.#settle('auto', head.at);
    Object.assign(head, { gen, owner, phase, revision });
  }

  /** When to begin at the latest; `undefined` if the generation has begun. */
  beginsAt({ emitted, hasEnded, heardAt }: Previous, leaseMs: number): number | undefined {
    const waiting = this.#waiting;
    // If the store has lost data, two owners can use the same number. A higher one follows.
    if (waiting === undefined || emitted.gen >= this.#head.gen) return undefined;
    const isFull = waiting.held.length > maxHeld || waiting.bytes > maxHeldBytes;
    if (hasEnded || isFull || this.#head.gen === 1 || emitted.owner === this.#head.owner) return -Infinity;
    // A replica that has just started may still hear the previous owner.
    if (heardAt === -Infinity) return waiting.since + timing.silentMs;
    return waiting.isOffered ? waiting.since + leaseMs : heardAt + timing.silentMs;
  }

  /**
   * Begins the generation in the line. Returns what has waited, to be published now.
   *
   * @param previous - the end of the line, as far as this replica knows it
   * @param time - the `time` of the stream now; `undefined` if this replica has received nothing. Like `clock` in epoch ms
   */
  begin({ line, hasEnded, emitted }: Previous, time: number | undefined, clock: number): readonly Held[] {
    const head = this.#head;
    const { held } = this.#waiting ?? { held: [] };
    this.#waiting = undefined;
    this.#shiftMs = this.#shiftFor(time, line?.at, clock);
    // An owner that claims again has learned of another one with its number. Then the numbers of its line prove nothing.
    const isUncertain = emitted.owner === head.owner && !hasEnded;
    const { gen: after, offset, frames, holes, at, complete } = line ?? startOf(notBegun, 0, this.#timeAt(clock));
    Object.assign(head, { line: line && !isUncertain ? line.line : newLine(), after, began: offset });
    Object.assign(head, { offset, frames, holes, at, complete });
    return held;
  }

  /** Whether the connection has opened in this generation, so the previous one's is closed. */
  get hasOpened(): boolean {
    return this.#hasOpened;
  }

  /** Returns what has waited for a generation that ends before it began. */
  drop(): readonly Held[] {
    return this.#waiting?.held.splice(0) ?? [];
  }

  /** Keeps what arrives before the generation begins; returns whether it does. */
  hold(each: Held): boolean {
    const waiting = this.#waiting;
    if (waiting === undefined) return false;
    waiting.held.push(each);
    if (each.type === 'frame') waiting.bytes += each.byteLength;
    return true;
  }

  /** Returns the head of a message that begins with the next frame. @param clock - its time, without the shift */
  head(clock: number, count = 0): FeedHead {
    // Spreading takes longer than the rest of the work for a message.
    const { line, gen, after, began, owner, phase, revision, offset, frames, holes, settling: until } = this.#head;
    const at = this.#timeAt(clock);
    this.#head.at = at;
    const complete = until === undefined ? at : this.#head.complete;
    const settling = typeof until === 'number' ? until + this.#shiftMs : until;
    return { line, gen, after, began, owner, phase, revision, offset, frames, holes, count, at, complete, settling };
  }

  timeOf({ receivedAt }: Frame): number {
    return this.#timeAt(receivedAt);
  }

  /** Counts a frame. @param at - its time in the stream */
  count(at: number): void {
    const head = this.#head;
    head.offset += 1;
    head.frames += 1;
    if (at > head.at) head.at = at;
  }

  frame(frame: Frame): BatchMessage {
    const head = this.head(frame.receivedAt, 1);
    this.count(head.at);
    return {
      ...head,
      kind: 'batch',
      framesOf: (connection, laterMs) => [frameAt(frame, head.at + laterMs, connection)],
    };
  }

  /** Returns whether followers need an event: until a generation's first connection, they only need the failures. */
  accepts(event: LifecycleEvent): boolean {
    if (event.type === 'opened') [this.#hasOpened, this.#trouble] = [true, undefined];
    if (event.type === 'disconnected') this.#trouble = event;
    return this.#hasOpened || event.type === 'disconnected' || event.type === 'reconnecting';
  }

  event(event: LifecycleEvent): PlainMessage {
    if (event.type === 'opened') this.#isOpen = true;
    const clock = event.type === 'gap' ? event.to : event.at;
    const endedAt = event.type === 'disconnected' ? event.failure.endedAt + this.#shiftMs : Infinity;
    // Without a `disconnected` before it, the last connection was replaced some time before.
    const completeUntil = event.type === 'opened' ? this.#head.at : Math.min(this.#timeAt(clock), endedAt);
    this.#settle(settlingAfter(this.#head.settling, event), completeUntil);
    const head = this.head(clock, 1);
    const { offset, frames, holes } = afterRecord(head, event, head.at);
    Object.assign(this.#head, { offset, frames, holes });
    return { ...head, kind: 'event', event: shifted(event, this.#shiftMs, head.at) };
  }

  beat(clock: number): PlainMessage {
    const { phase, line } = this.#head;
    const trouble = phase === 'open' ? undefined : this.#trouble;
    return {
      ...this.head(clock),
      // Its `opened` follows at once. A replica that joins must not open before.
      line: phase === 'open' && !this.#isOpen ? notBegun : line,
      kind: 'beat',
      event: trouble && shifted(trouble, this.#shiftMs),
    };
  }

  /**
   * Returns a generation's last message; `undefined` if this replica doesn't publish that generation. One that stood
   * still may have been replaced long before; another one was before it has begun.
   */
  end(gen: number, clock: number): PlainMessage | undefined {
    const { gen: own, line, at, phase } = this.#head;
    if (gen !== own || line === notBegun) return undefined;
    if (phase !== 'open' || this.#timeAt(clock) - at > timing.silentMs) this.#settle('auto', at);
    return { ...this.head(clock), kind: 'end' };
  }

  /** @param completeUntil - up to when the line is complete, if the connection isn't anymore */
  #settle(settling: FeedHead['settling'], completeUntil: number): void {
    const head = this.#head;
    if (head.settling === undefined && settling !== undefined) head.complete = completeUntil;
    head.settling = settling;
  }

  /** Returns what to add to this clock, so that times are neither far ahead of the stream's, nor far behind its end. */
  #shiftFor(time: number | undefined, end = -Infinity, clock: number): number {
    const { maxSkewMs } = timing;
    const skewMs = time === undefined ? this.#shiftMs : time - clock;
    const isNear = Math.abs(skewMs - this.#shiftMs) <= maxSkewMs;
    const shiftMs = isNear ? this.#shiftMs : Math.abs(skewMs) <= maxSkewMs ? 0 : skewMs;
    return end - (clock + shiftMs) > maxSkewMs ? end - clock : shiftMs;
  }

  /** Times don't go back, unless the clock was set back by much. */
  #timeAt(clock: number): number {
    const { at } = this.#head;
    const time = clock + this.#shiftMs;
    return time < at && at - time <= timing.maxSkewMs ? at : time;
  }
}

/** What the owner's follower knows of the previous generation. Times are monotonic, in ms. */
interface Previous {
  readonly emitted: Ownership;
  readonly hasEnded: boolean;
  readonly heardAt: number;
  /** Where the line ends. */
  readonly line: Place | undefined;
}

/** The line of a message before its generation has begun. Followers only learn who claimed. */
export const notBegun = noLine;

const settlingAfter = (settling: FeedHead['settling'], event: LifecycleEvent): FeedHead['settling'] => {
  if (event.type === 'disconnected') return 'auto';
  if (event.type === 'opened') return event.completeFrom ?? 'auto';
  // With `deliveryDelayMs`, another gap follows one that ends earlier.
  return event.type === 'gap' && (settling === 'auto' || event.to >= (settling ?? 0)) ? undefined : settling;
};

/** @param at - not before this time of the stream, except for a gap, which ended earlier */
export const shifted = <E extends LifecycleEvent>(event: E, ms: number, at = -Infinity): E => {
  if (event.type === 'gap') return { ...event, from: event.from + ms, to: event.to + ms };
  const later: LifecycleEvent = { ...event, at: Math.max(event.at + ms, at) };
  if (later.type === 'opened' && later.completeFrom !== undefined)
    return { ...later, completeFrom: later.completeFrom + ms } as LifecycleEvent as E;
  if (!('failure' in later) || ms === 0) return later as E;
  return {
    ...later,
    failure: copyFailure(later.failure, { endedAt: later.failure.endedAt + ms }),
  } as LifecycleEvent as E;
};

/** Messages share memory of this size, as long as they fit. */
const chunkBytes = 64 * 1024;

/**
 * Sends an owner's messages: all frames of one turn of the event loop together. Copies payloads at once, because read
 * memory is reused. No queue of values: the frames point into the message from then on, so nothing is copied twice.
 */
export class Outbox {
  readonly #publisher: Publisher;
  readonly #send: (bytes: Uint8Array, head: FeedHead) => void;
  readonly #maxBytes: () => number;
  #memory: Buffer = Buffer.alloc(0);
  /** Where the next message starts in the memory, and how many frames it has. */
  #start = 0;
  #end = 0;
  #count = 0;
  #head!: FeedHead;
  #limit = 0;
  #isDue = false;

  /** @param maxBytes - returns the size limit of a message, which can change with the server */
  constructor(publisher: Publisher, send: (bytes: Uint8Array, head: FeedHead) => void, maxBytes: () => number) {
    this.#publisher = publisher;
    this.#send = send;
    this.#maxBytes = maxBytes;
  }

  frame(frame: Frame): void {
    const bytes = frameHeadBytes + frame.byteLength;
    if (this.#count > 0 && this.#end - this.#start + bytes > this.#limit) this.flush();
    if (this.#count === 0) this.#begin(frame.receivedAt);
    if (this.#end - this.#start + bytes <= this.#limit) this.#add(frame, bytes);
    else {
      const head = this.#publisher.head(frame.receivedAt, 1);
      for (const part of encodeParts(head, frame, this.#limit)) this.#send(part, head);
    }
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  message(message: PlainMessage): void {
    this.flush();
    this.#send(encode(message), message);
  }

  flush(): void {
    if (this.#count === 0) return;
    const message = this.#memory.subarray(this.#start, this.#end);
    writeCount(message, this.#count);
    const head = { ...this.#head, count: this.#count };
    [this.#start, this.#count] = [this.#end, 0];
    this.#send(message, head);
  }

  #begin(receivedAt: number): void {
    const head = this.#publisher.head(receivedAt);
    const bytes = headBytesOf(head);
    this.#head = head;
    this.#limit = this.#maxBytes();
    this.#end = this.#start;
    this.#reserve(bytes);
    writeHead(this.#memory.subarray(this.#start), head, 'batch', 0);
    this.#end += bytes;
  }

  #add(frame: Frame, bytes: number): void {
    this.#reserve(bytes);
    writeFrameHead(this.#memory, this.#end, frame, this.#publisher.timeOf(frame) - this.#head.at);
    movePayload(frame, this.#memory, this.#end + frameHeadBytes, MemoryUse.Shared);
    this.#end += bytes;
    this.#count += 1;
  }

  /** Makes room for more of the message. Frames already added keep using the earlier memory. */
  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#memory.byteLength) return;
    const begun = this.#memory.subarray(this.#start, this.#end);
    this.#memory = allocateSeparately(Math.max(chunkBytes, 2 * begun.byteLength + bytes));
    this.#memory.set(begun);
    [this.#start, this.#end] = [0, begun.byteLength];
  }
}
