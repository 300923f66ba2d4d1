import type { Subscriber } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import { Frame } from '../protocol/frame.js';
import { BufferView } from '../transport/buffer-view.js';
import { markShared } from '../transport/mark-shared.js';

/**
 * Frames of one connection in one buffer, which changes threads without a copy: first a row for each frame, then the payloads.
 *
 * A row is 16 bytes: where the payload begins, counted from the first one (Uint32), twice its length, and one more when it is binary
 * (Uint32), when its bytes were read, in epoch ms (Float64).
 */
export interface Block {
  readonly type: 'frames';
  readonly feed: Feed;
  readonly connection: number;
  readonly count: number;
  readonly bytes: ArrayBuffer;
  /** When the first and the last of them were read, in epoch ms. */
  readonly from: number;
  readonly to: number;
}

/** How long a row is. */
export const rowBytes = 16;

/** The rows of a block, at its beginning. */
export interface Rows {
  readonly words: Uint32Array;
  readonly times: Float64Array;
}

/** Gives the rows at the beginning of a buffer. */
export const rowsOf = (bytes: ArrayBuffer, count: number): Rows => ({
  words: new Uint32Array(bytes, 0, count * 4),
  times: new Float64Array(bytes, 0, count * 2),
});

/**
 * Emits the frames of a block, in order, for as long as the subscriber is open. Their payloads are views of the block, which has arrived and is not
 * transferred again.
 */
export const emitFrames = (block: Block, connection: number, subscriber: Subscriber<Frame>): void => {
  const { feed, count, bytes } = block;
  const { words, times } = rowsOf(bytes, count);
  const first = count * rowBytes;
  markShared(bytes);
  for (let n = 0; n < count && !subscriber.closed; n += 1) {
    const word = words[n * 4 + 1] as number;
    const data = new BufferView(bytes, first + (words[n * 4] as number), word >>> 1);
    subscriber.next(new Frame(feed, data, (word & 1) === 1, times[n * 2 + 1] as number, connection));
  }
};
