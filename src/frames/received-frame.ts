import type { Feed } from '../protocol/feed.js';
import { Frame } from '../protocol/frame.js';
import { isSparse, LazyFrame } from '../protocol/lazy-frame.js';
import { allocateBytes, allocateSeparately } from './frame-memory.js';

/** A frame that is smaller owns its payload as a string. A long string that survives costs more than a Buffer, because V8 copies it twice. */
const STRING_BELOW_BYTES = 4 * 1024;

/**
 * A frame whose payload is in a part of a larger memory: the read buffer of a connection, a block, or a message between replicas.
 *
 * `text()` decodes from that memory. If others use its bytes, too, `data` copies from it. A read buffer is used again, so {@link ReceivedFrame.moveTo} or
 * {@link ReceivedFrame.own} must be called before. The memory is released when the frame has its payload in another form: a string or
 * a Buffer. It then creates the other one when it is needed. A text frame is valid UTF-8 (RFC 6455, 8.1), so its string gives the same bytes.
 */
export class ReceivedFrame extends LazyFrame {
  /** `undefined` when the frame has its payload in another form. */
  #memory: Buffer | undefined;
  #start: number;
  readonly #length: number;
  readonly #encoding: 'latin1' | 'utf8';
  /** Whether others use the bytes of the memory, too: the payload of `data` must be a copy. */
  #isShared: boolean;
  /** Whether the memory may be a read buffer. */
  #isReused: boolean;
  /** The payload in `#encoding`: the text, or a character for each byte of a binary frame. */
  #string: string | undefined = undefined;
  #data: Buffer | undefined = undefined;

  /**
   * @param memory - contains the payload from `start` to `end`
   * @param isAscii - whether all bytes of the payload are known to be ASCII
   * @param isShared - whether others use these bytes, too, or will use them again
   */
  constructor(
    feed: Feed,
    memory: Buffer,
    start: number,
    end: number,
    isBinary: boolean,
    isAscii: boolean,
    receivedAt: number,
    connection: number,
    isShared: boolean,
  ) {
    super(feed, undefined as never, isBinary, receivedAt, connection);
    this.#memory = memory;
    this.#start = start;
    this.#length = end - start;
    this.#encoding = isBinary || isAscii ? 'latin1' : 'utf8';
    this.#isShared = isShared;
    this.#isReused = isShared;
    // A structured clone contains only own properties, so it would lose the payload. An own function makes it throw instead.
    this.text = textOf;
  }

  static {
    // The class body cannot override a property with an accessor. An own accessor takes 100 ns for each frame.
    Object.defineProperty(this.prototype, 'data', {
      get(this: ReceivedFrame): Buffer {
        return (this.#data ??= this.#toBuffer());
      },
      set(this: ReceivedFrame, data: Buffer) {
        this.#data = data;
      },
    });
  }

  override get byteLength(): number {
    return this.#length;
  }

  override text(): string {
    if (this.isBinary) return this.view.toString('utf8');
    if (this.#string !== undefined) return this.#string;
    const memory = this.#memory as Buffer;
    // A frame that was stored must not keep it: V8 would copy the string to the memory of old objects.
    return this.#isShared ? this.#toString(memory) : this.#decode(memory);
  }

  override moveTo(block: Buffer, at: number, isShared = false): number {
    const { isLeased } = this;
    this.copyTo(block, at);
    if (isLeased) {
      this.#memory = block;
      this.#start = at;
      this.#isReused = false;
      this.#isShared = isShared;
    }
    return at + this.#length;
  }

  override copyTo(target: Buffer, at: number): void {
    if (this.#memory === undefined) this.data.copy(target, at);
    else this.#memory.copy(target, at, this.#start, this.#start + this.#length);
  }

  override own(): void {
    const memory = this.#memory;
    if (this.#string !== undefined) this.#release();
    else if (memory === undefined || !(this.#isShared || isSparse(this.#length, memory.buffer))) return;
    else if (this.#length >= STRING_BELOW_BYTES) this.#copyTo(allocateSeparately(this.#length), memory);
    else {
      this.#string = this.#decode(memory);
      this.#release();
    }
  }

  /** Whether the payload is only in memory that is used again. */
  get isLeased(): boolean {
    return this.#isReused && this.#memory !== undefined;
  }

  /** Whether all bytes of a text frame are known to be ASCII. */
  get isAscii(): boolean {
    return !this.isBinary && this.#encoding === 'latin1';
  }

  override get view(): Buffer {
    return this.#memory?.subarray(this.#start, this.#start + this.#length) ?? this.data;
  }

  /** All fields, as `JSON.stringify` writes those of other frames. `data` is not an own property. */
  toJSON(): object {
    return { ...this, data: this.data };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): Frame {
    return new Frame(this.feed, this.data, this.isBinary, this.receivedAt, this.connection);
  }

  #decode(memory: Buffer): string {
    return memory.toString(this.#encoding, this.#start, this.#start + this.#length);
  }

  /** Keeps only the string. */
  #release(): void {
    this.#memory = this.#data = undefined;
  }

  /** Keeps the payload as a string. */
  #toString(memory: Buffer): string {
    this.#memory = undefined;
    return (this.#string = this.#decode(memory));
  }

  #toBuffer(): Buffer {
    const memory = this.#memory;
    if (memory !== undefined)
      return this.#isShared ? this.#copyTo(allocateBytes(this.#length), memory) : this.#adopt(this.view);
    const data = allocateBytes(this.#length);
    data.write(this.#string as string, this.#encoding);
    return this.#adopt(data);
  }

  #copyTo(data: Buffer, memory: Buffer): Buffer {
    memory.copy(data, 0, this.#start, this.#start + this.#length);
    return this.#adopt(data);
  }

  /** Uses a Buffer of exactly the payload from now on. */
  #adopt(data: Buffer): Buffer {
    this.#start = 0;
    this.#isShared = false;
    this.#isReused = false;
    return (this.#memory = this.#data = data);
  }
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- becomes a property of each frame
const { text: textOf } = ReceivedFrame.prototype;
