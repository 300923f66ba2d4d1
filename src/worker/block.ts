import { markAsUntransferable } from 'node:worker_threads';
import type { Subscriber } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { ReceivedFrame } from '../frames/received-frame.js';

/**
 * Frames of one connection in one buffer, which is transferred to another thread without a copy. It contains the payloads, and a row for each of
 * them in the same order.
 *
 * A row has 16 bytes: the kind of the payload (Uint32, see {@link PayloadKind}), its length (Uint32), and when its bytes were read, in
 * epoch ms (Float64).
 */
export interface Block {
  readonly type: 'frames';
  readonly feed: Feed;
  readonly connection: number;
  readonly count: number;
  readonly bytes: ArrayBuffer;
  /** Where the rows begin in `bytes`. The payloads begin at 0. */
  readonly rowsAt: number;
  /** When the first and the last frame were read, in epoch ms. */
  readonly from: number;
  readonly to: number;
}

/** What a payload contains. A text that may contain other characters than ASCII is `Utf8`. */
export const PayloadKind = { Utf8: 0, Ascii: 1, Binary: 2 } as const;

/** Size of a row in bytes. */
export const rowBytes = 16;

/** The rows of a block. */
export interface Rows {
  readonly words: Uint32Array;
  readonly times: Float64Array;
}

/** Returns the rows at a position of a buffer. */
export const rowsOf = (bytes: ArrayBuffer, at: number, count: number): Rows => ({
  words: new Uint32Array(bytes, at, count * 4),
  times: new Float64Array(bytes, at, count * 2),
});

/**
 * Emits the frames of a block, in order, until the subscription ends. The memory of a block is not used again, so its frames copy nothing. It
 * is marked as untransferable, because a transfer would detach the bytes of all of them.
 */
export const emitFrames = (block: Block, connection: number, subscriber: Subscriber<Frame>): void => {
  const { feed, count, bytes, rowsAt } = block;
  const { words, times } = rowsOf(bytes, rowsAt, count);
  markAsUntransferable(bytes);
  const memory = Buffer.from(bytes);
  let start = 0;
  for (let n = 0; n < count && !subscriber.closed; n += 1) {
    const kind = words[n * 4];
    const end = start + (words[n * 4 + 1] as number);
    const isBinary = kind === PayloadKind.Binary;
    const isAscii = kind === PayloadKind.Ascii;
    const receivedAt = times[n * 2 + 1] as number;
    subscriber.next(new ReceivedFrame(feed, memory, start, end, isBinary, isAscii, receivedAt, connection, false));
    start = end;
  }
};
