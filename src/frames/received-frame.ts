import { markAsUntransferable } from 'node:worker_threads';
import type { Feed } from '../protocol/feed.js';
import { type AnyFrame, Frame, isSparse, LazyFrame } from '../protocol/frame.js';

/** What a payload contains. Text that may not be pure ASCII is `Utf8`. */
export const PayloadKind = { Utf8: 0, Binary: 1, Ascii: 2 } as const;
export type PayloadKind = (typeof PayloadKind)[keyof typeof PayloadKind];

/** Who else uses the memory of a payload. */
export const MemoryUse = {
  /** A read buffer: other bytes overwrite the payload once `next` returns. */
  Reused: 0,
  /** Shares its bytes with others, so `data` must be a copy. */
  Shared: 1,
  /** A part of a block that nothing else uses. */
  Block: 2,
  /** Exactly the payload. */
  Exact: 3,
} as const;
export type MemoryUse = (typeof MemoryUse)[keyof typeof MemoryUse];

/** Smaller payloads are kept as strings. Longer strings that survive cost more, because V8 copies them twice. */
const STRING_BELOW_BYTES = 4 * 1024;

/** What `Buffer.toString` calls after checking its arguments, which takes a fifth of a small frame's time. */
interface NodeMemory extends Buffer {
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
}

/**
 * Owns the bytes of a frame, which are part of a larger memory: the read buffer of a connection, a block, or a message
 * between replicas.
 *
 * `text()` decodes from that memory, and `data` copies from it if others use the bytes. Before a read buffer is reused,
 * call {@link Payload.moveTo} or {@link Payload.own}. Once the payload is a string or a Buffer, it releases the memory,
 * and creates the other form on demand. A text frame is valid UTF-8 (RFC 6455, 8.1), so its string yields the same
 * bytes.
 */
export class Payload {
  readonly byteLength: number;
  readonly kind: PayloadKind;
  /** `undefined` once the payload is only a string. */
  private memory: Buffer | undefined;
  private start: number;
  private use: MemoryUse;
  /** The text, or a character for each byte of a binary frame. */
  private string: string | undefined = undefined;

  /** @param memory - contains the payload from `start` to `end` */
  constructor(memory: Buffer, start: number, end: number, kind: PayloadKind, use: MemoryUse) {
    this.byteLength = end - start;
    this.kind = kind;
    this.memory = memory;
    this.start = start;
    this.use = use;
  }

  get data(): Buffer {
    const memory = this.memory;
    return memory !== undefined && this.use === MemoryUse.Exact ? memory : this.toBuffer();
  }

  /** The payload without copying it. Don't store it: the memory may be reused. */
  get view(): Buffer {
    return this.memory?.subarray(this.start, this.start + this.byteLength) ?? this.data;
  }

  text(): string {
    if (this.kind === PayloadKind.Binary) return this.view.toString('utf8');
    if (this.string !== undefined) return this.string;
    const text = this.decode();
    // If the memory isn't shared, drops the text: V8 would copy a stored frame's string to the memory of old objects.
    if (this.isShared) this.keep(text);
    return text;
  }

  /** Whether the payload exists only in a read buffer. */
  get isLeased(): boolean {
    return this.use === MemoryUse.Reused && this.memory !== undefined;
  }

  /**
   * Copies the payload to a block and, if it's leased, uses that memory from now on. Doesn't decode or create `data`.
   *
   * @returns where the payload ends in the block
   */
  moveTo(block: Buffer, at: number, use: MemoryUse): number {
    const memory = this.memory;
    if (memory === undefined) this.data.copy(block, at);
    else memory.copy(block, at, this.start, this.start + this.byteLength);
    if (memory !== undefined && this.use === MemoryUse.Reused) {
      this.memory = block;
      this.start = at;
      this.use = use;
    }
    return at + this.byteLength;
  }

  /** Moves the payload to memory that it alone uses. */
  own(): void {
    const memory = this.memory;
    if (this.string !== undefined) this.memory = undefined;
    else if (memory !== undefined && (this.isShared || isSparse(this.byteLength, memory.buffer))) {
      if (this.byteLength < STRING_BELOW_BYTES) this.keep(this.decode());
      else this.copyTo(allocateSeparately(this.byteLength), memory);
    }
  }

  private get isShared(): boolean {
    return this.use === MemoryUse.Reused || this.use === MemoryUse.Shared;
  }

  private get encoding(): 'latin1' | 'utf8' {
    return this.kind === PayloadKind.Utf8 ? 'utf8' : 'latin1';
  }

  private decode(): string {
    const memory = this.memory as NodeMemory;
    const end = this.start + this.byteLength;
    return this.kind === PayloadKind.Utf8 ? memory.utf8Slice(this.start, end) : memory.latin1Slice(this.start, end);
  }

  /** Keeps only the string. */
  private keep(text: string): void {
    this.string = text;
    this.memory = undefined;
  }

  private toBuffer(): Buffer {
    const memory = this.memory;
    if (memory !== undefined)
      return this.isShared ? this.copyTo(allocateBytes(this.byteLength), memory) : this.adopt(this.view);
    const data = allocateBytes(this.byteLength);
    data.write(this.string as string, this.encoding);
    return this.adopt(data);
  }

  private copyTo(data: Buffer, memory: Buffer): Buffer {
    memory.copy(data, 0, this.start, this.start + this.byteLength);
    return this.adopt(data);
  }

  /** From now on uses a Buffer that holds exactly the payload. */
  private adopt(data: Buffer): Buffer {
    this.start = 0;
    this.use = MemoryUse.Exact;
    return (this.memory = data);
  }
}

/** A frame with a {@link Payload}, which it may share with frames of another time or number: see `at`. */
export class ReceivedFrame extends LazyFrame {
  readonly #payload: Payload;

  constructor(feed: Feed, payload: Payload, receivedAt: number, connection: number) {
    super(feed, undefined, payload.kind === PayloadKind.Binary, receivedAt, connection);
    this.#payload = payload;
    // A structured clone copies only own properties and would lose the payload. An own function causes an exception.
    this.text = textOf;
  }

  static {
    // A class body can't override a property with an accessor, and defining one per frame takes 100 ns.
    Object.defineProperty(this.prototype, 'data', {
      get(this: ReceivedFrame): Buffer {
        return this.#payload.data;
      },
    });
  }

  override get byteLength(): number {
    return this.#payload.byteLength;
  }

  override get payload(): Payload {
    return this.#payload;
  }

  override text(): string {
    return this.#payload.text();
  }

  override at(receivedAt: number, connection: number): ReceivedFrame {
    return received(this.feed, this.#payload, receivedAt, connection);
  }

  /** Returns what `JSON.stringify` writes for other frames. `data` isn't an own property, so it's added. */
  toJSON(): object {
    return { ...this, data: this.data };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): Frame {
    return new Frame(this.feed, this.data, this.isBinary, this.receivedAt, this.connection);
  }
}

// Outside the class: bundlers rename a class that refers to itself.
const received = (...[feed, payload, receivedAt, connection]: ConstructorParameters<typeof ReceivedFrame>) =>
  new ReceivedFrame(feed, payload, receivedAt, connection);

// eslint-disable-next-line @typescript-eslint/unbound-method -- becomes a property of each frame
const { text: textOf } = ReceivedFrame.prototype;

export const kindOf = (frame: AnyFrame): PayloadKind => {
  if (frame instanceof ReceivedFrame) return frame.payload.kind;
  return frame.isBinary ? PayloadKind.Binary : PayloadKind.Utf8;
};

/** Copies a frame's payload to a block. A leased payload uses that memory from then on: see {@link Payload.moveTo}. */
export const movePayload = (frame: AnyFrame, block: Buffer, at: number, use: MemoryUse): void => {
  if (frame instanceof ReceivedFrame) frame.payload.moveTo(block, at, use);
  else block.set(frame.data, at);
};

/** Size of a chunk of memory for payloads. Allocating a buffer per payload would take longer than copying it. */
const CHUNK_BYTES = 64 * 1024;

/** Larger payloads get a separate buffer, so at most a quarter of a chunk is wasted. */
const MOST_SHARED_BYTES = CHUNK_BYTES / 4;

// Like Node's pool for small Buffers. Its memory is never reused, so connections can share it.
let chunk: Buffer = Buffer.alloc(0);
let used = 0;

/**
 * Allocates memory for a payload, possibly part of a chunk. It can't be transferred to another thread, because that
 * would detach the bytes of other subscribers' frames. Trying to throws a `DataCloneError` since Node 21; Node 20
 * copies.
 */
export const allocateBytes = (bytes: number): Buffer => {
  if (bytes > MOST_SHARED_BYTES) return allocateSeparately(bytes);
  if (used + bytes > chunk.length) {
    chunk = allocateSeparately(CHUNK_BYTES);
    used = 0;
  }
  const start = used;
  used += bytes;
  return chunk.subarray(start, used);
};

export const allocateSeparately = (bytes: number): Buffer => {
  const memory = Buffer.allocUnsafeSlow(bytes);
  markAsUntransferable(memory.buffer);
  return memory;
};

/** Size limit of a block with more than one payload. A stored frame keeps its whole block alive. */
const BLOCK_BYTES = 64 * 1024;

/** Copies leased payloads to blocks. A payload larger than a block gets its own. */
export const moveToBlocks = (payloads: readonly Payload[]): void => {
  let group: Payload[] = [];
  let bytes = 0;
  const moveGroup = (): void => {
    const block = allocateBytes(bytes);
    let at = 0;
    for (const payload of group) at = payload.moveTo(block, at, MemoryUse.Block);
    group = [];
    bytes = 0;
  };
  for (const payload of payloads) {
    if (bytes + payload.byteLength > BLOCK_BYTES) moveGroup();
    group.push(payload);
    bytes += payload.byteLength;
  }
  moveGroup();
};
