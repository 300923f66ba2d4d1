import { allocateBytes } from './frame-memory.js';
import type { ReceivedFrame } from './received-frame.js';

/** The frames of one read. Their payloads are in memory that is used again. */
export interface Lease {
  /** Emits a frame. Its payload is read in place while `next` runs. */
  readonly emit: (frame: ReceivedFrame) => void;
  /** Copies the payloads that no subscriber has read to one block. Call it before the memory is used again. */
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
      const frames = unread.filter(({ isLeased }) => isLeased);
      unread = [];
      const block = allocateBytes(frames.reduce((sum, { byteLength }) => sum + byteLength, 0));
      let at = 0;
      for (const frame of frames) at = frame.moveTo(block, at);
    },
  };
};
