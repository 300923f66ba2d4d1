import type { Frame } from '../../protocol/frame.js';
import { copyPayload } from '../../protocol/lazy-frame.js';
import { flagsOf, headBytesOf, offsetOf, writeHead } from './encode.js';
import type { MessageHead } from './feed-message.js';
import { frameHeadBytes } from './layout.js';

/** Collects frames for one message. It copies their payloads at once, because the memory of a read is used again. */
export interface OpenBatch {
  /** Adds a frame if the message with it is not too large. Returns whether it has. */
  add(head: MessageHead, frame: Frame): boolean;
  /** Returns the message and starts an empty one; `undefined` without frames. */
  seal(): Buffer | undefined;
}

const firstBytes = 16 * 1024;

/**
 * Creates an {@link OpenBatch}.
 *
 * @param maxBytes - size limit of a message
 */
export const createOpenBatch = (maxBytes: number): OpenBatch => {
  let memory = Buffer.allocUnsafeSlow(Math.min(firstBytes, maxBytes));
  let first: MessageHead | undefined;
  let count = 0;
  let size = 0;

  return {
    add: (head, frame) => {
      const { byteLength } = frame;
      const start = first === undefined ? headBytesOf(head) : size;
      const end = start + frameHeadBytes + byteLength;
      if (end > maxBytes) return false;
      if (end > memory.byteLength) memory = enlarged(memory, start, end, maxBytes);
      first ??= head;
      memory.writeUInt8(flagsOf(frame), start);
      memory.writeInt32BE(offsetOf(first, frame), start + 1);
      memory.writeUInt32BE(byteLength, start + 5);
      copyPayload(frame, memory, start + frameHeadBytes);
      size = end;
      count += 1;
      return true;
    },
    seal: () => {
      if (first === undefined) return undefined;
      writeHead(memory, first, 'batch', count);
      const message = Buffer.from(memory.subarray(0, size));
      [first, count, size] = [undefined, 0, 0];
      return message;
    },
  };
};

const enlarged = (memory: Buffer, used: number, needed: number, maxBytes: number): Buffer<ArrayBuffer> => {
  const larger = Buffer.allocUnsafeSlow(Math.min(maxBytes, Math.max(needed, memory.byteLength * 2)));
  memory.copy(larger, 0, 0, used);
  return larger;
};
