import type { Frame } from '../protocol/frame.js';
import { isSparse } from '../protocol/lazy-frame.js';
import { ReceivedFrame } from '../frames/received-frame.js';
import { type Block, PayloadKind, type Rows, rowBytes, rowsOf } from './block.js';

/** Collects frames in the memory of a block. It copies their payloads at once, because the memory of a read is used again. Do not use a frame afterwards. */
export interface OpenBlock {
  /**
   * Adds a frame. All frames of a block must be from one connection. If the block contains enough bytes, first seals and returns the block
   * without this frame.
   */
  add(frame: Frame): Block | undefined;
  /** Creates a block of the frames and starts an empty one. Returns `undefined` if there are no frames. */
  seal(): Block | undefined;
  /** The size of its payloads. */
  readonly usedBytes: number;
  readonly isEmpty: boolean;
}

/** A row contains a Float64. */
const ROW_ALIGNMENT = 8;
const firstRows = 256;
/** A block of 64 KiB and its last frame fit. */
const firstBytes = 80 * 1024;

/**
 * Creates an {@link OpenBlock}.
 *
 * @param enoughBytes - the size at which a block is sealed
 */
export const createOpenBlock = (enoughBytes: number): OpenBlock => {
  let rows = rowsOf(new ArrayBuffer(firstRows * rowBytes), 0, firstRows);
  let payloads = Buffer.allocUnsafeSlow(firstBytes);
  let count = 0;
  let payloadBytes = 0;
  let first: Frame | undefined;

  const sizeBytes = (): number => count * rowBytes + payloadBytes;

  /** Returns memory of at least a size, which begins with the payloads: the memory that was filled, or a copy if little of it is used. */
  const memoryFor = (bytes: number): Buffer<ArrayBuffer> => {
    const filled = payloads;
    if (bytes > filled.length || isSparse(bytes, filled.buffer)) {
      const copy = Buffer.allocUnsafeSlow(bytes);
      filled.copy(copy, 0, 0, payloadBytes);
      return copy;
    }
    payloads = Buffer.allocUnsafeSlow(firstBytes);
    return filled;
  };

  const seal = (): Block | undefined => {
    if (first === undefined) return undefined;
    const { feed, connection, receivedAt: from } = first;
    const to = rows.times[count * 2 - 1] as number;
    const rowsAt = Math.ceil(payloadBytes / ROW_ALIGNMENT) * ROW_ALIGNMENT;
    const bytes = memoryFor(rowsAt + count * rowBytes);
    bytes.set(new Uint8Array(rows.times.buffer, 0, count * rowBytes), rowsAt);
    const sealed: Block = { type: 'frames', feed, connection, count, bytes: bytes.buffer, rowsAt, from, to };
    first = undefined;
    [count, payloadBytes] = [0, 0];
    return sealed;
  };

  return {
    add: (frame) => {
      const { byteLength: length, receivedAt } = frame;
      const full = sizeBytes() >= enoughBytes ? seal() : undefined;
      if (payloadBytes + length > payloads.length) payloads = enlarged(payloads, payloadBytes, length);
      if (frame instanceof ReceivedFrame) frame.moveTo(payloads, payloadBytes);
      else payloads.set(frame.data, payloadBytes);

      if (count * 4 === rows.words.length) rows = doubled(rows);
      rows.words[count * 4] = kindOf(frame);
      rows.words[count * 4 + 1] = length;
      rows.times[count * 2 + 1] = receivedAt;
      payloadBytes += length;
      count += 1;
      first ??= frame;
      return full;
    },
    seal,
    get usedBytes() {
      return payloadBytes;
    },
    get isEmpty() {
      return count === 0;
    },
  };
};

const kindOf = (frame: Frame): number => {
  if (frame.isBinary) return PayloadKind.Binary;
  return frame instanceof ReceivedFrame && frame.isAscii ? PayloadKind.Ascii : PayloadKind.Utf8;
};

const doubled = ({ times }: Rows): Rows => {
  const bytes = new ArrayBuffer(times.byteLength * 2);
  new Float64Array(bytes).set(times);
  return rowsOf(bytes, 0, times.length);
};

const enlarged = (payloads: Buffer, used: number, more: number): Buffer<ArrayBuffer> => {
  const larger = Buffer.allocUnsafeSlow(Math.max(used + more, payloads.length * 2));
  payloads.copy(larger, 0, 0, used);
  return larger;
};
