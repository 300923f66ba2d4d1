import { markAsUntransferable } from 'node:worker_threads';
import type { Feed } from '../protocol/feed.js';
import { Frame } from '../protocol/frame.js';

/**
 * A frame whose payload is in memory that is used again: the read buffer of a connection, or a block of a worker.
 *
 * `text()` decodes from that memory, and `data` copies from it. {@link ReceivedFrame.keep} must be called before the memory is used again.
 * Afterwards the frame has a string or a Buffer of its payload, and creates the other one when it is needed. A text frame is valid
 * UTF-8 (RFC 6455, 8.1), so its string gives the same bytes.
 */
export class ReceivedFrame extends Frame {
  /** `undefined` when the frame has its payload. */
  #memory: Buffer | undefined;
  readonly #start: number;
  readonly #end: number;
  readonly #encoding: 'latin1' | 'utf8';
  /** The payload in `#encoding`: the text, or a character for each byte of a binary frame. */
  #string: string | undefined = undefined;
  #data: Buffer | undefined = undefined;

  /**
   * @param memory - contains the payload from `start` to `end`
   * @param isAscii - whether all bytes of the payload are known to be ASCII
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
  ) {
    super(feed, undefined as never, isBinary, receivedAt, connection);
    this.#memory = memory;
    this.#start = start;
    this.#end = end;
    this.#encoding = isBinary || isAscii ? 'latin1' : 'utf8';
  }

  static {
    // The class body cannot override a property with an accessor. An own property would need a copy of each payload.
    Object.defineProperty(this.prototype, 'data', {
      get(this: ReceivedFrame): Buffer {
        return (this.#data ??= this.#copy());
      },
      set(this: ReceivedFrame, data: Buffer) {
        this.#data = data;
      },
    });
  }

  override get byteLength(): number {
    return this.#end - this.#start;
  }

  override text(): string {
    return this.isBinary ? this.view.toString('utf8') : (this.#string ?? this.#decode());
  }

  /** Keeps the payload, unless the frame has it. */
  keep(): void {
    if (this.#memory !== undefined) this.#decode();
  }

  /** Ends the use of the memory without keeping the payload. Do not read the frame afterwards. */
  release(): void {
    this.#memory = undefined;
  }

  /** Whether the payload is only in memory that is used again. */
  get isLeased(): boolean {
    return this.#memory !== undefined;
  }

  override get view(): Buffer {
    return this.#memory?.subarray(this.#start, this.#end) ?? this.data;
  }

  override get stored(): Buffer | undefined {
    return this.#data;
  }

  /** All fields, as `console.log` and `JSON.stringify` print them. `data` is not an own property. */
  toJSON(): object {
    return { ...this, data: this.data };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return this.toJSON();
  }

  #decode(): string {
    const memory = this.#memory;
    if (memory === undefined) return this.data.toString('utf8');
    this.#memory = undefined;
    return (this.#string = memory.toString(this.#encoding, this.#start, this.#end));
  }

  #copy(): Buffer {
    const memory = this.#memory;
    const data = allocate(this.byteLength);
    if (memory === undefined) data.write(this.#string as string, this.#encoding);
    else memory.copy(data, 0, this.#start, this.#end);
    this.#memory = undefined;
    return data;
  }
}

// A transfer to another thread would detach the bytes of a frame that other subscribers have, too. Node marks its pool for small Buffers.
const allocate = (bytes: number): Buffer => {
  const data = Buffer.allocUnsafe(bytes);
  if (data.buffer.byteLength === bytes) markAsUntransferable(data.buffer);
  return data;
};
