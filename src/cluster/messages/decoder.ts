import { readEventLine } from '../../protocol/event-line.js';
import type { LifecycleEvent } from '../../protocol/event.js';
import type { Feed } from '../../protocol/feed.js';
import { ReceivedFrame } from '../../frames/received-frame.js';
import type { Frame } from '../../protocol/frame.js';
import type { FeedMessage, MessageHead } from './feed-message.js';
import { flag, frameHeadBytes, headBytes, kinds, partHeadBytes, phases, version } from './layout.js';

/** Reads the messages of owners. */
export interface Decoder {
  /** Returns a message; `undefined` for bytes that are not a message of another replica, and for a part whose frame is not complete yet. */
  decode(bytes: Uint8Array): FeedMessage | undefined;
}

/** A frame of which some parts have arrived. */
interface Incomplete {
  readonly head: MessageHead;
  readonly data: Buffer;
  received: number;
}

/**
 * Creates a {@link Decoder}. The payloads of frames are views of the bytes of the message. It holds the parts of one frame at most.
 *
 * @param maxFrameBytes - size limit of a frame that arrives in parts
 * @param self - returns the id of this replica, whose messages it does not read
 */
export const createDecoder = (feed: Feed, maxFrameBytes: number, self: () => string): Decoder => {
  let incomplete: Incomplete | undefined;

  const readPart = (head: MessageHead, body: Buffer): FeedMessage | undefined => {
    if (body.byteLength <= partHeadBytes) return undefined;
    const length = body.readUInt32BE(5);
    const offset = body.readUInt32BE(9);
    const part = body.subarray(partHeadBytes);
    if (length > maxFrameBytes || offset + part.byteLength > length) return undefined;
    if (offset === 0) incomplete = { head, data: Buffer.allocUnsafeSlow(length), received: 0 };
    const isNext =
      incomplete?.received === offset && incomplete.data.byteLength === length && isSamePlace(incomplete.head, head);
    if (incomplete === undefined || !isNext) {
      incomplete = undefined;
      return undefined;
    }
    const { data } = incomplete;
    data.set(part, offset);
    incomplete.received += part.byteLength;
    if (incomplete.received < length) return undefined;
    incomplete = undefined;
    return Object.assign(head, {
      kind: 'batch',
      batch: [frameOf(feed, head, viewOf(body), 0, data, 0, length)],
    } as const);
  };

  return {
    decode: (bytes) => {
      const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const read = readHead(message);
      if (read === undefined || read.head.owner === self()) return undefined;
      const { head, kind, count, body } = read;
      switch (kind) {
        case kinds.batch: {
          const batch = readBatch(feed, head, count, body);
          // A spread of the head takes longer than the rest of the work for a message.
          return batch && Object.assign(head, { kind: 'batch', batch } as const);
        }
        case kinds.event: {
          const event = readEvent(body);
          return event && Object.assign(head, { kind: 'event', event } as const);
        }
        case kinds.beat:
          return Object.assign(head, { kind: 'beat' } as const);
        case kinds.end:
          return Object.assign(head, { kind: 'end' } as const);
        case kinds.part:
          return readPart(head, body);
        default:
          return undefined;
      }
    },
  };
};

const isSamePlace = (one: MessageHead, other: MessageHead): boolean =>
  one.gen === other.gen && one.owner === other.owner && one.sequence === other.sequence;

interface Head {
  readonly head: MessageHead;
  readonly kind: number;
  readonly count: number;
  readonly body: Buffer;
}

const readHead = (bytes: Buffer): Head | undefined => {
  if (bytes.byteLength < headBytes || bytes[0] !== version) return undefined;
  const bodyAt = headBytes + bytes.readUInt8(3);
  const phase = phases[bytes.readUInt8(2)];
  if (bytes.byteLength < bodyAt || phase === undefined) return undefined;
  const [epoch, gen, revision] = [bytes.readDoubleBE(8), bytes.readDoubleBE(16), bytes.readDoubleBE(24)];
  const [sequence, frames, at] = [bytes.readDoubleBE(32), bytes.readDoubleBE(40), bytes.readDoubleBE(48)];
  const areCounts = isCount(epoch) && isCount(gen) && isCount(revision) && isCount(sequence) && isCount(frames);
  if (!areCounts || !Number.isFinite(at)) return undefined;
  const owner = bytes.toString('utf8', headBytes, bodyAt);
  return {
    head: { epoch, gen, owner, phase, revision, sequence, frames, at },
    kind: bytes.readUInt8(1),
    count: bytes.readUInt32BE(4),
    body: bytes.subarray(bodyAt),
  };
};

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

const readBatch = (feed: Feed, head: MessageHead, count: number, body: Buffer): readonly Frame[] | undefined => {
  // Each frame has a head, so a forged count cannot make a long loop.
  if (count === 0 || count * frameHeadBytes > body.byteLength) return undefined;
  const view = viewOf(body);
  const batch: Frame[] = [];
  let at = 0;
  for (let n = 0; n < count; n += 1) {
    const start = at + frameHeadBytes;
    if (start > body.byteLength) return undefined;
    const end = start + view.getUint32(at + 5);
    if (end > body.byteLength) return undefined;
    batch.push(frameOf(feed, head, view, at, body, start, end));
    at = end;
  }
  return at === body.byteLength ? batch : undefined;
};

const viewOf = ({ buffer, byteOffset, byteLength }: Buffer): DataView => new DataView(buffer, byteOffset, byteLength);

/** Creates a frame from its head at a position of the body. Its payload is in `memory`, which other replicas of the process can use, too. */
const frameOf = (
  feed: Feed,
  head: MessageHead,
  body: DataView,
  position: number,
  memory: Buffer,
  start: number,
  end: number,
): Frame => {
  const flags = body.getUint8(position);
  const receivedAt = head.at + body.getInt32(position + 1);
  const isBinary = (flags & flag.binary) !== 0;
  return new ReceivedFrame(feed, memory, start, end, isBinary, (flags & flag.ascii) !== 0, receivedAt, 0, true);
};

const readEvent = (body: Buffer): LifecycleEvent | undefined => {
  try {
    const event = readEventLine(body.toString('utf8'), 0);
    return event === undefined || event.type === 'frame' || event.type === 'value' ? undefined : event;
  } catch {
    return undefined;
  }
};
