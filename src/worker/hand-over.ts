import type { Frame } from '../protocol/frame.js';
import { type Block, OpenBlock } from './block.js';
import { awaitHandled, type EventItem, handledOf, type Item } from './messages.js';

/** How many batches may be unhandled: the main thread handles one while the next is being sent. */
const maxBatches = 2;
/**
 * Size limit of a batch, unless a single block is larger. A socket may deliver this much in one turn of the event loop.
 */
const batchBytes = 2 * 1024 * 1024;

/**
 * Sends frames and events to the main thread: at the end of each turn while it keeps up, otherwise in larger batches
 * from a bounded store.
 */
export class HandOver {
  readonly #post: (items: readonly Item[], transferred: ArrayBuffer[]) => void;
  readonly #progress: Int32Array;
  readonly #store: Store;
  /** The bytes of each unhandled batch. */
  readonly #inFlight: number[] = [];
  #sent = 0;
  #isDue = false;

  /**
   * @param post - sends a batch, transferring the listed buffers
   * @param progress - how many batches the main thread has handled
   */
  constructor(
    post: (items: readonly Item[], transferred: ArrayBuffer[]) => void,
    progress: Int32Array,
    capacityBytes: number,
  ) {
    this.#post = post;
    this.#progress = progress;
    this.#store = new Store(capacityBytes);
  }

  addFrame(frame: Frame): void {
    if (this.#store.addFrame(frame)) {
      // More frames of this read, with the same time, may follow, so the watermark must not be later.
      this.#send(frame.receivedAt);
      this.#store.shrink();
    }
    this.#sendAfterReads();
  }

  addEvent(item: EventItem): void {
    this.#store.addEvent(item);
    this.#sendAfterReads();
  }

  /** Sends more, once the main thread has handled a batch. */
  resume(): void {
    this.#send(Date.now());
  }

  /** Sends a watermark if the store is empty and the main thread keeps up. Don't call it while a read is handled. */
  sendWatermark(): void {
    if (this.#store.isEmpty() && this.#hasRoom()) this.#sendBatch([], Date.now());
  }

  // Sends the frames of one turn together, except full blocks, which `addFrame` sends at once.
  #sendAfterReads(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#send(Date.now());
    });
  }

  /** @param now - a time in epoch ms: later frames aren't older */
  #send(now: number): void {
    while (!this.#store.isEmpty() && this.#hasRoomOrWaits()) {
      const items = this.#store.take(batchBytes);
      // Frames that stay in the store aren't older than those sent.
      const newest = items.findLast((item) => item.type === 'frames')?.to ?? -Infinity;
      this.#sendBatch(items, this.#store.isEmpty() ? now : newest);
    }
  }

  #sendBatch(items: readonly Item[], watermark: number): void {
    const buffers = items.flatMap((item) => (item.type === 'frames' ? [item.bytes] : []));
    this.#inFlight.push(buffers.reduce((sum, { byteLength }) => sum + byteLength, 0));
    this.#sent = (this.#sent + 1) | 0;
    this.#post([...items, { type: 'event', event: { type: 'watermark', at: watermark } }], buffers);
  }

  #hasRoomOrWaits(): boolean {
    if (this.#hasRoom()) return true;
    awaitHandled(this.#progress);
    return this.#hasRoom();
  }

  #hasRoom(): boolean {
    const notHandled = (this.#sent - handledOf(this.#progress)) | 0;
    for (const bytes of this.#inFlight.splice(0, this.#inFlight.length - notHandled)) this.#store.release(bytes);
    return this.#inFlight.length < maxBatches;
  }
}

/**
 * Holds the frames and events that wait for the main thread. Only frames count toward its capacity. No queue of values:
 * blocks are dropped between the events, which stay.
 */
export class Store {
  readonly #items: Item[] = [];
  readonly #filling: OpenBlock;
  readonly #capacityBytes: number;
  #sealedBytes = 0;

  /** @param capacityBytes - for blocks, including those taken but not yet released, and the payloads of new frames */
  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes;
    // A small part of the capacity, because only whole blocks can be dropped.
    this.#filling = new OpenBlock(Math.min(64 * 1024, capacityBytes / 64));
  }

  isEmpty(): boolean {
    return this.#items.length === 0 && this.#filling.isEmpty;
  }

  /** Adds a frame. Returns whether the frames before it were sealed into a block. */
  addFrame(frame: Frame): boolean {
    return this.#addBlock(this.#filling.add(frame));
  }

  /** Adds an event after the stored frames. Events are never dropped. */
  addEvent(item: EventItem): void {
    this.#addBlock(this.#filling.seal());
    this.#items.push(item);
  }

  /**
   * Removes and returns the oldest items: events, and blocks of at most `maxBytes` in total, or one larger block. The
   * blocks count toward the capacity until `release`.
   */
  take(maxBytes: number): readonly Item[] {
    this.#addBlock(this.#filling.seal());
    let bytes = 0;
    const end = this.#items.findIndex((item) => {
      if (item.type !== 'frames') return false;
      const isFirst = bytes === 0;
      bytes += item.bytes.byteLength;
      return !isFirst && bytes > maxBytes;
    });
    return this.#items.splice(0, end < 0 ? this.#items.length : end);
  }

  /** Frees the capacity of blocks that the main thread has handled. */
  release(bytes: number): void {
    this.#sealedBytes -= bytes;
  }

  /** Drops the oldest blocks until the rest fits the capacity. */
  shrink(): void {
    while (this.#sealedBytes + this.#filling.usedBytes > this.#capacityBytes) {
      const n = this.#items.findIndex(({ type }) => type === 'frames');
      if (n < 0) return;
      const { bytes, from, to, count } = this.#items[n] as Block;
      this.#sealedBytes -= bytes.byteLength;
      const before = this.#items[n - 1];
      const dropped = { type: 'missed', from, to, frames: count } as const;
      if (before?.type !== 'missed') this.#items[n] = dropped;
      else this.#items.splice(n - 1, 2, { ...dropped, from: before.from, frames: before.frames + count });
    }
  }

  #addBlock(block: Block | undefined): boolean {
    if (block === undefined) return false;
    this.#items.push(block);
    this.#sealedBytes += block.bytes.byteLength;
    return true;
  }
}
