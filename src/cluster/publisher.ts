import { allocateSeparately, MemoryUse, movePayload } from '../frames/received-frame.js';
import type { LifecycleEvent } from '../protocol/event.js';
import { copyFailure } from '../protocol/failures/trade-feed-error.js';
import { type Frame, frameAt } from '../protocol/frame.js';
import type { KeyPhase } from './election/cluster-key.js';
import type { Report } from './election/election.js';
import { timing } from './election/timing.js';
import {
  type BatchMessage,
  encode,
  encodeParts,
  frameHeadBytes,
  headBytesOf,
  type MessageHead,
  type PlainMessage,
  writeCount,
  writeFrameHead,
  writeHead,
} from './messages.js';

/** Numbers an owner's frames and events, and creates the messages for its followers. */
export class Publisher {
  /**
   * The place of the next frame or event, and whether the connection settles, by this owner's clock. One object with
   * plain fields, because they're read for each frame.
   */
  readonly place = {
    ...{ epoch: 0, gen: 0, owner: '', phase: 'opening' as KeyPhase, revision: 0, sequence: 0, frames: 0 },
    settling: 'auto' as MessageHead['settling'],
  };
  /** Added to this owner's times, so the stream's times continue although its clock differs. */
  #shiftMs = 0;
  #hasOpened = false;
  /** While disconnected: the last failure, and the delay after it. */
  #trouble: readonly LifecycleEvent[] = [];

  /** Sets what the next messages report. A new generation restarts at 0. */
  report({ gen, owner, phase, revision }: Report, epoch: number): void {
    const isNew = gen !== this.place.gen;
    // An open connection continues in the new generation.
    if (isNew) [this.#hasOpened, this.#trouble] = [this.#hasOpened && phase === 'open', []];
    // One that was replaced has no connection, either, although no event says so.
    if (!this.#hasOpened || phase !== 'open') this.place.settling = 'auto';
    Object.assign(this.place, { epoch, gen, owner, phase, revision }, isNew && { sequence: 0, frames: 0 });
  }

  /** Continues the `time` of the stream; `undefined` if this replica has received nothing. Both in epoch ms. */
  continue(time: number | undefined, clock: number): void {
    if (time === undefined) return;
    const skewMs = time - clock;
    const { maxSkewMs } = timing;
    if (Math.abs(skewMs - this.#shiftMs) > maxSkewMs) this.#shiftMs = Math.abs(skewMs) <= maxSkewMs ? 0 : skewMs;
  }

  /** Returns the head of a message that begins with the next frame. @param clock - its time, without the shift */
  head(clock: number): MessageHead {
    // Spreading takes longer than the rest of the work for a message.
    const { epoch, gen, owner, phase, revision, sequence, frames, settling: until } = this.place;
    const settling = typeof until === 'number' ? until + this.#shiftMs : until;
    return { epoch, gen, owner, phase, revision, sequence, frames, at: clock + this.#shiftMs, settling };
  }

  timeOf({ receivedAt }: Frame): number {
    return receivedAt + this.#shiftMs;
  }

  count(): void {
    this.place.sequence += 1;
    this.place.frames += 1;
  }

  frame(frame: Frame): BatchMessage {
    const head = this.head(frame.receivedAt);
    const framesOf: BatchMessage['framesOf'] = (connection, laterMs) => [frameAt(frame, head.at + laterMs, connection)];
    this.count();
    return { ...head, kind: 'batch', bytes: frame.byteLength, framesOf };
  }

  /**
   * Until a generation's first connection, other replicas only need the failures. Returns `undefined` for other events.
   */
  event(event: LifecycleEvent): PlainMessage | undefined {
    if (event.type === 'opened') [this.#hasOpened, this.#trouble] = [true, []];
    if (event.type === 'disconnected') this.#trouble = [event];
    this.place.settling = settlingAfter(this.place.settling, event);
    if (event.type === 'reconnecting') this.#trouble = [...this.#trouble.slice(0, 1), event];
    if (!this.#hasOpened) return this.#trouble.includes(event) ? this.#message('report', event) : undefined;
    const message = this.#message('event', event);
    this.place.sequence += 1;
    return message;
  }

  /** Returns the last reports of a disconnected owner, for replicas that join or have missed them. */
  reports(): readonly PlainMessage[] {
    return this.#trouble.map((event) => this.#message('report', event));
  }

  beat(clock: number): PlainMessage {
    return { ...this.head(clock), kind: 'beat' };
  }

  /** Returns a generation's last message; `undefined` if this replica doesn't publish that generation. */
  end(gen: number, clock: number): PlainMessage | undefined {
    return gen === this.place.gen ? { ...this.head(clock), kind: 'end' } : undefined;
  }

  #message(kind: 'event' | 'report', event: LifecycleEvent): PlainMessage {
    return { ...this.head(event.type === 'gap' ? event.to : event.at), kind, event: shifted(event, this.#shiftMs) };
  }
}

const settlingAfter = (settling: MessageHead['settling'], event: LifecycleEvent): MessageHead['settling'] => {
  if (event.type === 'disconnected') return 'auto';
  if (event.type === 'opened') return event.completeFrom ?? 'auto';
  // With `deliveryDelayMs`, another gap follows one that ends earlier.
  return event.type === 'gap' && (settling === 'auto' || event.to >= (settling ?? 0)) ? undefined : settling;
};

export const shifted = (event: LifecycleEvent, ms: number): LifecycleEvent => {
  if (ms === 0) return event;
  const later = event.type === 'gap' ? { from: event.from + ms, to: event.to + ms } : { at: event.at + ms };
  if (event.type === 'opened' && event.completeFrom !== undefined)
    return { ...event, ...later, completeFrom: event.completeFrom + ms };
  if (!('failure' in event)) return { ...event, ...later };
  return { ...event, ...later, failure: copyFailure(event.failure, { endedAt: event.failure.endedAt + ms }) };
};

/** Messages share memory of this size, as long as they fit. */
const chunkBytes = 64 * 1024;

/**
 * Sends an owner's messages: all frames of one turn of the event loop together. Copies payloads at once, because read
 * memory is reused. No queue of values: the frames point into the message from then on, so nothing is copied twice.
 */
export class Outbox {
  readonly #publisher: Publisher;
  readonly #send: (bytes: Uint8Array) => void;
  readonly #maxBytes: () => number;
  #memory: Buffer = Buffer.alloc(0);
  /** Where the next message starts in the memory, how many frames it has, and when the first one was received. */
  #start = 0;
  #end = 0;
  #count = 0;
  #receivedAt = 0;
  #limit = 0;
  #isDue = false;

  /** @param maxBytes - returns the size limit of a message, which can change with the server */
  constructor(publisher: Publisher, send: (bytes: Uint8Array) => void, maxBytes: () => number) {
    this.#publisher = publisher;
    this.#send = send;
    this.#maxBytes = maxBytes;
  }

  frame(frame: Frame): void {
    const bytes = frameHeadBytes + frame.byteLength;
    if (this.#count > 0 && this.#end - this.#start + bytes > this.#limit) this.flush();
    if (this.#count === 0) this.#begin(frame.receivedAt);
    if (this.#end - this.#start + bytes <= this.#limit) this.#add(frame, bytes);
    else encodeParts(this.#publisher.head(frame.receivedAt), frame, this.#limit).forEach(this.#send);
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  message(message: PlainMessage): void {
    this.flush();
    this.#send(encode(message));
  }

  flush(): void {
    if (this.#count === 0) return;
    const message = this.#memory.subarray(this.#start, this.#end);
    writeCount(message, this.#count);
    [this.#start, this.#count] = [this.#end, 0];
    this.#send(message);
  }

  #begin(receivedAt: number): void {
    const head = this.#publisher.head(receivedAt);
    const bytes = headBytesOf(head);
    this.#receivedAt = receivedAt;
    this.#limit = this.#maxBytes();
    this.#end = this.#start;
    this.#reserve(bytes);
    writeHead(this.#memory.subarray(this.#start), head, 'batch', 0);
    this.#end += bytes;
  }

  #add(frame: Frame, bytes: number): void {
    this.#reserve(bytes);
    writeFrameHead(this.#memory, this.#end, frame, frame.receivedAt - this.#receivedAt);
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
