import { markAsUntransferable } from 'node:worker_threads';
import type { Subscriber } from 'rxjs';
import { kindOf, MemoryUse, movePayload, Payload, type PayloadKind, ReceivedFrame } from '../frames/received-frame.js';
import type { Feed } from '../protocol/feed.js';
import { type Frame, isSparse } from '../protocol/frame.js';

/**
 * Frames of one connection in one buffer, which can move to another thread without being copied. It holds the payloads
 * and, in the same order, a row for each.
 *
 * A row is 16 bytes: the kind of the payload (Uint32, see {@link PayloadKind}), its length (Uint32), and when its bytes
 * were read, in epoch ms (Float64).
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

export const rowBytes = 16;

const rowsOf = (bytes: ArrayBuffer, at: number, count: number) => ({
  words: new Uint32Array(bytes, at, count * 4),
  times: new Float64Array(bytes, at, count * 2),
});

/**
 * Emits the frames of a block, in order, until the subscription ends. A block's memory is never reused, so frames read
 * from it without copying. It's marked as untransferable, because transferring it would detach the bytes of them all.
 */
export const emitFrames = (block: Block, connection: number, subscriber: Subscriber<Frame>): void => {
  const { feed, count, bytes, rowsAt } = block;
  const { words, times } = rowsOf(bytes, rowsAt, count);
  markAsUntransferable(bytes);
  const memory = Buffer.from(bytes);
  let start = 0;
  for (let n = 0; n < count && !subscriber.closed; n += 1) {
    const end = start + (words[n * 4 + 1] as number);
    const payload = new Payload(memory, start, end, words[n * 4] as PayloadKind, MemoryUse.Block);
    subscriber.next(new ReceivedFrame(feed, payload, times[n * 2 + 1] as number, connection));
    start = end;
  }
};

/** A row contains a Float64. */
const ROW_ALIGNMENT = 8;
const firstRows = 256;
/** Fits a block of 64 KiB and its last frame. */
const firstBytes = 80 * 1024;

/**
 * Collects frames of one connection in the memory of a block. Copies their payloads at once, because the read buffer is
 * reused. No queue of values: the memory itself moves to the main thread. Don't use a frame afterwards.
 */
export class OpenBlock {
  readonly #enoughBytes: number;
  #rows = rowsOf(new ArrayBuffer(firstRows * rowBytes), 0, firstRows);
  #payloads = Buffer.allocUnsafeSlow(firstBytes);
  #count = 0;
  #usedBytes = 0;
  #first: Frame | undefined;

  /** @param enoughBytes - the size from which a block is sealed */
  constructor(enoughBytes: number) {
    this.#enoughBytes = enoughBytes;
  }

  /** The total size of its payloads. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Adds a frame. If the block already has enough bytes, first seals and returns it without this frame. */
  add(frame: Frame): Block | undefined {
    const { byteLength, receivedAt } = frame;
    const full = this.#count * rowBytes + this.#usedBytes >= this.#enoughBytes ? this.seal() : undefined;
    const neededBytes = this.#usedBytes + byteLength;
    if (neededBytes > this.#payloads.length)
      this.#payloads = this.#copyTo(Math.max(neededBytes, this.#payloads.length * 2));
    movePayload(frame, this.#payloads, this.#usedBytes, MemoryUse.Block);
    if (this.#count * 4 === this.#rows.words.length) this.#doubleRows();
    const { words, times } = this.#rows;
    words[this.#count * 4] = kindOf(frame);
    words[this.#count * 4 + 1] = byteLength;
    times[this.#count * 2 + 1] = receivedAt;
    this.#usedBytes = neededBytes;
    this.#count += 1;
    this.#first ??= frame;
    return full;
  }

  /** Seals the frames into a block and starts an empty one. Returns `undefined` if there are none. */
  seal(): Block | undefined {
    if (this.#first === undefined) return undefined;
    const { feed, connection, receivedAt: from } = this.#first;
    const count = this.#count;
    const { times } = this.#rows;
    const rowsAt = Math.ceil(this.#usedBytes / ROW_ALIGNMENT) * ROW_ALIGNMENT;
    const memory = this.#giveMemory(rowsAt + count * rowBytes);
    memory.set(new Uint8Array(times.buffer, 0, count * rowBytes), rowsAt);
    this.#first = undefined;
    this.#count = 0;
    this.#usedBytes = 0;
    const to = times[count * 2 - 1] as number;
    return { type: 'frames', feed, connection, count, bytes: memory.buffer, rowsAt, from, to };
  }

  /** Returns memory that begins with the payloads: the filled memory, or a copy if little of it is used. */
  #giveMemory(bytes: number): Buffer<ArrayBuffer> {
    const filled = this.#payloads;
    if (bytes > filled.length || isSparse(bytes, filled.buffer)) return this.#copyTo(bytes);
    this.#payloads = Buffer.allocUnsafeSlow(firstBytes);
    return filled;
  }

  #copyTo(bytes: number): Buffer<ArrayBuffer> {
    const copy = Buffer.allocUnsafeSlow(bytes);
    this.#payloads.copy(copy, 0, 0, this.#usedBytes);
    return copy;
  }

  #doubleRows(): void {
    const { times } = this.#rows;
    const bytes = new ArrayBuffer(times.byteLength * 2);
    new Float64Array(bytes).set(times);
    this.#rows = rowsOf(bytes, 0, times.length);
  }
}
