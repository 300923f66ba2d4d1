import type { Subscriber } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { createLease } from '../transport/lease.js';
import { ReceivedFrame } from '../transport/received-frame.js';

/**
 * Frames of one connection in one buffer, which is transferred to another thread without a copy. It contains a row for each frame, then
 * the payloads.
 *
 * A row has 16 bytes: the offset of the payload from the first payload (Uint32), twice its length, plus 1 if it is binary (Uint32), and
 * when its bytes were read, in epoch ms (Float64).
 */
export interface Block {
  readonly type: 'frames';
  readonly feed: Feed;
  readonly connection: number;
  readonly count: number;
  readonly bytes: ArrayBuffer;
  /** When the first and the last frame were read, in epoch ms. */
  readonly from: number;
  readonly to: number;
}

/** Size of a row in bytes. */
export const rowBytes = 16;

/** The rows of a block, at its beginning. */
export interface Rows {
  readonly words: Uint32Array;
  readonly times: Float64Array;
}

/** Returns the rows at the beginning of a buffer. */
export const rowsOf = (bytes: ArrayBuffer, count: number): Rows => ({
  words: new Uint32Array(bytes, 0, count * 4),
  times: new Float64Array(bytes, 0, count * 2),
});

/**
 * Emits the frames of a block, in order, until the subscription ends. They read their payloads from the block while `next` runs, and do not
 * keep the block alive.
 */
export const emitFrames = (block: Block, connection: number, subscriber: Subscriber<Frame>): void => {
  const { feed, count, bytes } = block;
  const { words, times } = rowsOf(bytes, count);
  const first = count * rowBytes;
  const memory = Buffer.from(bytes, first);
  const lease = createLease((frame) => subscriber.next(frame));
  for (let n = 0; n < count && !subscriber.closed; n += 1) {
    const word = words[n * 4 + 1] as number;
    const start = words[n * 4] as number;
    const end = start + (word >>> 1);
    lease.emit(
      new ReceivedFrame(feed, memory, start, end, (word & 1) === 1, false, times[n * 2 + 1] as number, connection),
    );
  }
  lease.end();
};
