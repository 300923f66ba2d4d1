import type { Frame } from '../../protocol/frame.js';
import { movePayload } from '../../protocol/lazy-frame.js';
import { allocateSeparately } from '../../frames/frame-memory.js';
import { flagsOf, headBytesOf, offsetOf, writeHead } from './encode.js';
import type { MessageHead } from './feed-message.js';
import { frameHeadBytes } from './layout.js';

/**
 * Collects frames for one message. It copies their payloads at once, because the memory of a read is used again. The frames use the memory of the
 * message from then on, so their payloads are not copied once more.
 */
export interface OpenBatch {
  /** Adds a frame if the message with it is not too large. Returns whether it has. `headOf`: see `Outbox.frame`. */
  add(frame: Frame, headOf: (at: number) => MessageHead): boolean;
  /** Returns the message and starts an empty one; `undefined` without frames. */
  seal(): Buffer | undefined;
}

/** Messages share memory of this size, as long as they fit. */
const chunkBytes = 64 * 1024;

/**
 * Creates an {@link OpenBatch}.
 *
 * @param maxBytes - size limit of a message
 */
export const createOpenBatch = (maxBytes: number): OpenBatch => {
  let memory = viewed(Buffer.alloc(0));
  let first: MessageHead | undefined;
  let count = 0;
  /** The message in its memory. */
  let start = 0;
  let end = 0;

  return {
    add: (frame, headOf) => {
      const { byteLength } = frame;
      const head = first ?? headOf(frame.receivedAt);
      const size = first === undefined ? headBytesOf(head) : end - start;
      const newSize = size + frameHeadBytes + byteLength;
      if (newSize > maxBytes) return false;
      if (start + newSize > memory.bytes.byteLength) {
        memory = enlarged(memory.bytes.subarray(start, end), newSize);
        start = 0;
      }
      first = head;
      const at = start + size;
      const { bytes, view } = memory;
      view.setUint8(at, flagsOf(frame));
      view.setInt32(at + 1, offsetOf(head, frame));
      view.setUint32(at + 5, byteLength);
      movePayload(frame, bytes, at + frameHeadBytes);
      end = start + newSize;
      count += 1;
      return true;
    },
    seal: () => {
      if (first === undefined) return undefined;
      const message = memory.bytes.subarray(start, end);
      writeHead(message, first, 'batch', count);
      [first, count, start] = [undefined, 0, end];
      return message;
    },
  };
};

const viewed = (bytes: Buffer) => ({ bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) });

/** Returns new memory with the beginning of a message. Frames that were added before continue to use the earlier memory. */
const enlarged = (begin: Buffer, needed: number) => {
  const larger = allocateSeparately(Math.max(chunkBytes, needed + begin.byteLength));
  larger.set(begin);
  return viewed(larger);
};
