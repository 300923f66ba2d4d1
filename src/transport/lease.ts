import { allocateBytes } from '../frames/frame-memory.js';
import type { ReceivedFrame } from '../frames/received-frame.js';

/** Size limit of a block with more than one payload. A stored frame keeps its whole block. */
const BLOCK_BYTES = 64 * 1024;

/** The frames of one read. Their payloads are in memory that is used again. */
export interface Lease {
  /** Emits a frame. Its payload is read in place while `next` runs. */
  readonly emit: (frame: ReceivedFrame) => void;
  /** Copies the payloads that no subscriber has read to blocks. Call it before the memory is used again. */
  readonly end: () => void;
}

/** Creates a {@link Lease}. */
export const createLease = (next: (frame: ReceivedFrame) => void): Lease => {
  let unread: ReceivedFrame[] = [];
  return {
    emit: (frame) => {
      next(frame);
      if (frame.isLeased) unread.push(frame);
    },
    end: () => {
      if (unread.length === 0) return;
      // Another subscriber may have read a frame during the `next` of a later one.
      for (const group of groupsOf(unread.filter(({ isLeased }) => isLeased))) moveToBlock(group);
      unread = [];
    },
  };
};

const sizeOf = (frames: readonly ReceivedFrame[]): number =>
  frames.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** Divides frames into groups that fit into a block. A larger frame is a group. */
function* groupsOf(frames: readonly ReceivedFrame[]): Generator<readonly ReceivedFrame[]> {
  let first = 0;
  let bytes = 0;
  for (const [n, { byteLength }] of frames.entries()) {
    if (bytes + byteLength > BLOCK_BYTES && n > first) {
      yield frames.slice(first, n);
      first = n;
      bytes = 0;
    }
    bytes += byteLength;
  }
  if (first < frames.length) yield frames.slice(first);
}

const moveToBlock = (frames: readonly ReceivedFrame[]): void => {
  const block = allocateBytes(sizeOf(frames));
  let at = 0;
  for (const frame of frames) at = frame.moveTo(block, at);
};
