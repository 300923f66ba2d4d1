import { markAsUntransferable } from 'node:worker_threads';
import type { Feed } from '../protocol/feed.js';
import { type AnyFrame, Frame, isSparse, LazyFrame } from '../protocol/frame.js';

/** What a payload contains. A text that may contain other characters than ASCII is `Utf8`. */
export const PayloadKind = { Utf8: 0, Binary: 1, Ascii: 2 } as const;
export type PayloadKind = (typeof PayloadKind)[keyof typeof PayloadKind];

/** Who uses the memory of a payload. */
export const MemoryUse = {
  /** A read buffer: other bytes replace the payload when `next` returns. */
  Reused: 0,
  /** Others use these bytes, too: `data` must be a copy. */
  Shared: 1,
  /** A block, in which nothing else uses these bytes. */
  Block: 2,
  /** The memory is exactly the payload. */
  Exact: 3,
} as const;
export type MemoryUse = (typeof MemoryUse)[keyof typeof MemoryUse];

/** A smaller payload is owned as a string. A long string that survives costs more, because V8 copies it twice. */
const STRING_BELOW_BYTES = 4 * 1024;

/** What `Buffer.toString` calls after a check of its arguments that costs a fifth of the time of a small frame. */
interface NodeMemory extends Buffer {
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
}

/**
 * The one owner of the bytes of a frame, which are a part of a larger memory: the read buffer of a connection, a block,
 * or a message between replicas.
 *
 * `text()` decodes from that memory. If others use its bytes, too, `data` copies from it. A read buffer is used again,
 * so {@link Payload.moveTo} or {@link Payload.own} must be called before. The memory is released when the payload has
 * another form: a string or a Buffer. It then creates the other one when it is needed. A text frame is valid UTF-8 (RFC
 * 6455, 8.1), so its string gives the same bytes.
 */
export class Payload {
  readonly byteLength: number;
  readonly kind: PayloadKind;
  /** `undefined` when the payload is only a string. */
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

  /** The payload without a copy. Do not store it: its memory may be used again. */
  get view(): Buffer {
    return this.memory?.subarray(this.start, this.start + this.byteLength) ?? this.data;
  }

  text(): string {
    if (this.kind === PayloadKind.Binary) return this.view.toString('utf8');
    if (this.string !== undefined) return this.string;
    const text = this.decode();
    // A frame that was stored must not keep it: V8 would copy the string to the memory of old objects.
    if (this.isShared) this.keep(text);
    return text;
  }

  /** Whether the payload is only in a read buffer. */
  get isLeased(): boolean {
    return this.use === MemoryUse.Reused && this.memory !== undefined;
  }

  /**
   * Copies the payload to a block, and uses that memory from now on if it is leased. It does not decode, and creates no
   * `data`.
   *
   * @returns the end of the payload in the block
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

  /** Moves the payload to memory that nothing else uses. */
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

  /** Uses a Buffer of exactly the payload from now on. */
  private adopt(data: Buffer): Buffer {
    this.start = 0;
    this.use = MemoryUse.Exact;
    return (this.memory = data);
  }
}

/** A frame that has a {@link Payload}. Frames with other times or numbers can have the same one: see `at`. */
export class ReceivedFrame extends LazyFrame {
  readonly #payload: Payload;

  constructor(feed: Feed, payload: Payload, receivedAt: number, connection: number) {
    super(feed, undefined, payload.kind === PayloadKind.Binary, receivedAt, connection);
    this.#payload = payload;
    // A structured clone contains only own properties, so it would lose the payload. An own function makes it throw
    // instead.
    this.text = textOf;
  }

  static {
    // The class body cannot override a property with an accessor. An own accessor takes 100 ns for each frame.
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

  /** All fields, as `JSON.stringify` writes those of other frames. `data` is not an own property. */
  toJSON(): object {
    return { ...this, data: this.data };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): Frame {
    return new Frame(this.feed, this.data, this.isBinary, this.receivedAt, this.connection);
  }
}

// Outside of the class: a class that names itself gets another name in a bundle.
const received = (...[feed, payload, receivedAt, connection]: ConstructorParameters<typeof ReceivedFrame>) =>
  new ReceivedFrame(feed, payload, receivedAt, connection);

// eslint-disable-next-line @typescript-eslint/unbound-method -- becomes a property of each frame
const { text: textOf } = ReceivedFrame.prototype;

export const kindOf = (frame: AnyFrame): PayloadKind => {
  if (frame instanceof ReceivedFrame) return frame.payload.kind;
  return frame.isBinary ? PayloadKind.Binary : PayloadKind.Utf8;
};

/** Copies the payload of a frame to a block. A leased one uses that memory from then on: see {@link Payload.moveTo}. */
export const movePayload = (frame: AnyFrame, block: Buffer, at: number, use: MemoryUse): void => {
  if (frame instanceof ReceivedFrame) frame.payload.moveTo(block, at, use);
  else block.set(frame.data, at);
};

/** Size of a chunk of memory for payloads. A separate buffer for each payload would take longer than its copy. */
const CHUNK_BYTES = 64 * 1024;

/** Larger payloads have a separate buffer. So at most a quarter of a chunk is unused. */
const MOST_SHARED_BYTES = CHUNK_BYTES / 4;

// As the pool of Node for small Buffers. Its memory is never used again, so it is no state of a connection.
let chunk: Buffer = Buffer.alloc(0);
let used = 0;

/**
 * Allocates memory for a payload, which can be a part of a chunk. It cannot be transferred to another thread: a
 * transfer would detach the bytes of frames that other subscribers have, too. Since Node 21 it throws a
 * `DataCloneError`. Node 20 copies the memory instead.
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
