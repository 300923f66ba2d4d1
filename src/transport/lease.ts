import type { ReceivedFrame } from './received-frame.js';

/** The frames of one read. Their payloads are in memory that is used again. */
export interface Lease {
  /** Emits a frame. Its payload is read in place while `next` runs. */
  readonly emit: (frame: ReceivedFrame) => void;
  /** Keeps the payloads that no subscriber has read. Call it before the memory is used again. */
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
      const frames = unread;
      unread = [];
      for (const frame of frames) frame.keep();
    },
  };
};
