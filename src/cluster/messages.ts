import { kindOf, MemoryUse, Payload, PayloadKind, ReceivedFrame } from '../frames/received-frame.js';
import { readEventLine, writeEventLine } from '../protocol/event-line.js';
import type { LifecycleEvent } from '../protocol/event.js';
import type { Feed } from '../protocol/feed.js';
import { type Frame, payloadOf } from '../protocol/frame.js';
import type { Head } from '../protocol/place.js';
import { tryCall } from '../protocol/type-guards.js';
import type { KeyPhase } from './election/cluster-key.js';
import type { Report } from './election/election.js';

/** What each message says: of the line, its owner, and whether a place is complete. Times are by the owner's clock. */
export interface FeedHead extends Head, Report {
  /**
   * While the owner's connection isn't known to be complete after this message: from when it will be, in epoch ms, or
   * `auto` if that depends on its first frame. A `gap` says when it is. `undefined` if it's complete.
   */
  readonly settling: 'auto' | number | undefined;
}

export interface BatchMessage extends FeedHead {
  readonly kind: 'batch';
  /** Each frame gets the number of its connection in this replica, and its time in the stream. */
  readonly framesOf: (connection: number, laterMs: number) => readonly Frame[];
}
type Batch = Omit<BatchMessage, keyof FeedHead>;

type PlainBody =
  | { readonly kind: 'event'; readonly event: LifecycleEvent }
  /** `event`: why the owner has no connection, for replicas that join. */
  | { readonly kind: 'beat'; readonly event?: LifecycleEvent | undefined }
  | { readonly kind: 'end' };

export type PlainMessage = FeedHead & PlainBody;
export type FeedMessage = BatchMessage | PlainMessage;

type EventMessage<T extends LifecycleEvent['type']> = FeedHead & {
  readonly kind: 'event';
  readonly event: Extract<LifecycleEvent, { readonly type: T }>;
};

export const isEvent = <T extends LifecycleEvent['type']>(message: FeedMessage, type: T): message is EventMessage<T> =>
  message.kind === 'event' && message.event.type === type;

/** Whether it says itself what the connection is. */
export const isStatus = (message: FeedMessage): message is EventMessage<'opened' | 'disconnected'> =>
  isEvent(message, 'opened') || isEvent(message, 'disconnected');

/** Whether its owner is connected, as far as it says. Frames prove it. */
export const hasConnection = ({ kind, phase }: FeedMessage): boolean => phase === 'open' || kind === 'batch';

// The layout of a message, in big-endian: version, kind, phase and length of the names (1 byte each), number of
// records (Uint32), the numbers of the head (Float64, since they can exceed 2^32), the names, which are the line and the
// owner's id, and the body.
//
// A batch's body holds for each frame: its kind (1 byte), when it was received, in ms after the message's time (Int32),
// its length (Uint32), and its bytes. A part holds one frame, and after the length of the whole frame the offset of
// this part (Uint32).
const version = 2;
/** `gen`, `after`, `began`, `revision`, `offset`, `frames`, `holes`, `at`, `complete`, `settling`. */
const numbers = 10;
const headBytes = 8 + 8 * numbers;
export const frameHeadBytes = 9;
const partHeadBytes = frameHeadBytes + 4;

/** The kinds of messages, numbered from 1. A part is a piece of a frame too large for one message. */
const kinds = ['batch', 'event', 'beat', 'end', 'part'] as const;
type Kind = (typeof kinds)[number];

const phases: readonly KeyPhase[] = ['opening', 'open', 'free', 'stopped'];

export const headBytesOf = ({ line, owner }: FeedHead): number =>
  headBytes + line.length + 1 + Buffer.byteLength(owner);

export const writeCount = (bytes: Buffer, count: number): unknown => bytes.writeUInt32BE(count, 4);

/** Returns where the body begins. */
export const writeHead = (bytes: Buffer, head: FeedHead, kind: Kind, count: number): number => {
  const { line, gen, after, began, owner, phase, revision, offset, frames, holes, at, complete, settling } = head;
  const names = `${line} ${owner}`;
  bytes[0] = version;
  bytes[1] = 1 + kinds.indexOf(kind);
  bytes[2] = phases.indexOf(phase);
  bytes[3] = Buffer.byteLength(names);
  writeCount(bytes, count);
  let end = 8;
  const until = settling === undefined ? -Infinity : settling === 'auto' ? NaN : settling;
  for (const number of [gen, after, began, revision, offset, frames, holes, at, complete, until])
    end = bytes.writeDoubleBE(number, end);
  return end + bytes.write(names, end);
};

/** @param laterMs - when the frame was received, in ms after the time of the message */
export const writeFrameHead = (bytes: Buffer, at: number, frame: Frame, laterMs: number): void => {
  bytes[at] = kindOf(frame);
  // 32 bits hold 24 days. Setting the clock by more than that must not make the message unreadable.
  bytes.writeInt32BE(Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Math.floor(laterMs))), at + 1);
  bytes.writeUInt32BE(frame.byteLength, at + 5);
};

export const encode = (message: PlainMessage): Buffer => {
  const text = 'event' in message && message.event ? writeEventLine(publicEvent(message.event)) : '';
  const bytes = Buffer.allocUnsafe(headBytesOf(message) + Buffer.byteLength(text));
  bytes.write(text, writeHead(bytes, message, message.kind, message.count));
  return bytes;
};

// Only a failure's fixed texts leave the process.
const publicEvent = (event: LifecycleEvent): LifecycleEvent =>
  'failure' in event ? { ...event, failure: event.failure.toPublic() } : event;

/** A part below this size isn't worth its head: it exceeds the limit instead, and the engine refuses it. */
const minPartBytes = 256;

/** Returns the messages of a frame too large for one message of `maxBytes`. */
export const encodeParts = (head: FeedHead, frame: Frame, maxBytes: number): readonly Buffer[] => {
  const data = payloadOf(frame);
  const begin = headBytesOf(head) + partHeadBytes;
  const partBytes = Math.max(minPartBytes, maxBytes - begin);
  return Array.from({ length: Math.ceil(data.byteLength / partBytes) }, (_, n) => {
    const part = data.subarray(n * partBytes, (n + 1) * partBytes);
    const bytes = Buffer.allocUnsafe(begin + part.byteLength);
    writeFrameHead(bytes, writeHead(bytes, head, 'part', 1), frame, 0);
    bytes.writeUInt32BE(n * partBytes, begin - 4);
    bytes.set(part, begin);
    return bytes;
  });
};

/** A frame whose parts haven't all arrived: the body of a batch. */
interface Incomplete {
  readonly head: FeedHead;
  readonly body: Buffer;
  received: number;
}

/** Reads messages. Payloads are views of the message's bytes. Holds the parts of one frame at most. */
export class Decoder {
  readonly #feed: Feed;
  readonly #maxFrameBytes: number;
  readonly #self: () => string;
  #incomplete: Incomplete | undefined;

  /**
   * @param maxFrameBytes - size limit of a frame that arrives in parts
   * @param self - returns this replica's id, whose messages are skipped
   */
  constructor(feed: Feed, maxFrameBytes: number, self: () => string) {
    this.#feed = feed;
    this.#maxFrameBytes = maxFrameBytes;
    this.#self = self;
  }

  /** Returns `undefined` for bytes that aren't another replica's message, and for every part but the last. */
  decode(data: Uint8Array): FeedMessage | undefined {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const head = readHead(bytes);
    if (head === undefined || head.owner === this.#self()) return undefined;
    const body = this.#readBody(head, bytes);
    // Spreading the head takes longer than the rest of the work for a message.
    return body && Object.assign(head, body);
  }

  #readBody(head: FeedHead, bytes: Buffer): Batch | PlainBody | undefined {
    const kind = kinds[bytes.readUInt8(1) - 1];
    if (kind === undefined) return undefined;
    const body = bytes.subarray(bodyAt(bytes));
    switch (kind) {
      case 'batch':
        return readBatch(this.#feed, head, bytes.readUInt32BE(4), body);
      case 'part':
        return this.#readPart(head, body);
      case 'event': {
        const event = readEvent(body);
        return event && { kind, event };
      }
      case 'beat':
        return { kind, event: body.byteLength > 0 ? readEvent(body) : undefined };
      case 'end':
        return { kind };
    }
  }

  #readPart(head: FeedHead, part: Buffer): Batch | undefined {
    if (part.byteLength <= partHeadBytes) return undefined;
    const [length, offset] = [part.readUInt32BE(5), part.readUInt32BE(9)];
    const data = part.subarray(partHeadBytes);
    if (length > this.#maxFrameBytes || offset + data.byteLength > length) return undefined;
    if (offset === 0) {
      const body = Buffer.allocUnsafeSlow(frameHeadBytes + length);
      part.copy(body, 0, 0, frameHeadBytes);
      this.#incomplete = { head, body, received: 0 };
    }
    const frame = this.#incomplete;
    this.#incomplete = undefined;
    if (frame?.received !== offset || frame.body.byteLength !== frameHeadBytes + length) return undefined;
    if (!isSamePlace(frame.head, head)) return undefined;
    frame.body.set(data, frameHeadBytes + offset);
    frame.received += data.byteLength;
    if (frame.received === length) return readBatch(this.#feed, head, 1, frame.body);
    this.#incomplete = frame;
    return undefined;
  }
}

const isSamePlace = (one: FeedHead, other: FeedHead): boolean =>
  one.gen === other.gen && one.owner === other.owner && one.offset === other.offset;

const bodyAt = (bytes: Buffer): number => headBytes + bytes.readUInt8(3);

const readHead = (bytes: Buffer): FeedHead | undefined => {
  if (bytes.byteLength < headBytes || bytes[0] !== version) return undefined;
  const phase = phases[bytes.readUInt8(2)];
  if (bytes.byteLength < bodyAt(bytes) || phase === undefined) return undefined;
  const count = bytes.readUInt32BE(4);
  const [gen, after, began] = [bytes.readDoubleBE(8), bytes.readDoubleBE(16), bytes.readDoubleBE(24)];
  const [revision, offset, frames] = [bytes.readDoubleBE(32), bytes.readDoubleBE(40), bytes.readDoubleBE(48)];
  const [holes, at, complete] = [bytes.readDoubleBE(56), bytes.readDoubleBE(64), bytes.readDoubleBE(72)];
  const areCounts = [gen, after, began, revision, offset, frames, holes].every(isCount);
  if (!areCounts || !Number.isFinite(at) || !Number.isFinite(complete)) return undefined;
  const until = bytes.readDoubleBE(80);
  const settling = Number.isFinite(until) ? until : Number.isNaN(until) ? 'auto' : undefined;
  const names = bytes.toString('utf8', headBytes, bodyAt(bytes));
  const [line, owner] = [names.slice(0, names.indexOf(' ')), names.slice(names.indexOf(' ') + 1)];
  return { line, gen, after, began, owner, phase, revision, offset, frames, holes, count, at, complete, settling };
};

/** Returns what a message says of the line; `undefined` for bytes that aren't a message. */
export const headOf = (data: Uint8Array): Head | undefined =>
  readHead(Buffer.from(data.buffer, data.byteOffset, data.byteLength));

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

const readBatch = (feed: Feed, { at }: FeedHead, count: number, body: Buffer): Batch | undefined => {
  // Each frame has a head, so this keeps a forged count from causing a long loop.
  if (count === 0 || count * frameHeadBytes > body.byteLength) return undefined;
  let end = 0;
  for (let n = 0; n < count; n += 1) {
    if (end + frameHeadBytes > body.byteLength) return undefined;
    end += frameHeadBytes + body.readUInt32BE(end + 5);
  }
  if (end !== body.byteLength) return undefined;
  const framesOf = (connection: number, laterMs: number): readonly Frame[] => {
    const frames: Frame[] = [];
    for (let start = frameHeadBytes; start <= end;) {
      const head = start - frameHeadBytes;
      const next = start + body.readUInt32BE(head + 5);
      const payload = new Payload(body, start, next, kindIn(body.readUInt8(head)), MemoryUse.Shared);
      const receivedAt = at + body.readInt32BE(head + 1) + laterMs;
      frames.push(new ReceivedFrame(feed, payload, receivedAt, connection));
      start = next + frameHeadBytes;
    }
    return frames;
  };
  return { kind: 'batch', framesOf };
};

const kindIn = (bits: number): PayloadKind => (bits & PayloadKind.Binary || bits & PayloadKind.Ascii) as PayloadKind;

// If the event is dropped, the next message's number is one too high, so subscribers see a gap.
const readEvent = (body: Buffer): LifecycleEvent | undefined => {
  const event = tryCall(() => readEventLine(body.toString('utf8'), 0));
  return event === undefined || event.type === 'frame' || event.type === 'value' ? undefined : event;
};
