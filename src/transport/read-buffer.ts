import type { OnReadOpts, Socket } from 'node:net';
import type { Connect, ConnectWith } from './connect-socket.js';

/** Size of the buffer until the first read. Most connections of a reconnect, and all spare ones, need no more. */
const FIRST_BYTES = 4 * 1024;

/** Size of the buffer after the first read. Reads that fill it need fewer system calls, and it fits into the cache of a CPU. */
const SIZE_BYTES = 512 * 1024;

/** A read has at least this much space. It is more than a TLS record. */
const LEAST_FREE_BYTES = 128 * 1024;

/**
 * The buffer into which all reads of a socket go. No read allocates memory.
 *
 * Bytes that were not used in a read, such as the beginning of a frame, stay in the buffer, and the next read is behind them. So a frame
 * that arrives in several reads is in one piece. If it needs more than half of the buffer, the buffer grows.
 */
export class ReadBuffer {
  /** Handles the unused bytes after a read. Returns how many of them are used now. Their memory is used again when it returns. */
  onBytes: (bytes: Buffer) => number;

  /** The option `onread` of the socket. */
  readonly onread: OnReadOpts = {
    buffer: () => this.#free(),
    callback: (length) => {
      this.#end += length;
      this.#start += this.onBytes(this.#memory.subarray(this.#start, this.#end));
      return true;
    },
  };

  #memory: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #usual: Buffer | undefined;
  #view = this.#memory;
  #start = 0;
  #end = 0;

  constructor(onBytes: (bytes: Buffer) => number) {
    this.onBytes = onBytes;
  }

  #free(): Buffer {
    const { length } = this.#memory;
    const unused = this.#end - this.#start;
    if (this.#end > 0 && unused === 0) this.#moveTo(SIZE_BYTES);
    else if (unused > 0 && length - this.#end < LEAST_FREE_BYTES)
      this.#moveTo(unused * 2 > length ? Math.max(length * 2, SIZE_BYTES) : length);
    if (this.#view.byteOffset !== this.#end || this.#view.buffer !== this.#memory.buffer)
      this.#view = this.#memory.subarray(this.#end);
    return this.#view;
  }

  #moveTo(bytes: number): void {
    const memory = bytes > SIZE_BYTES ? this.#larger(bytes) : (this.#usual ??= Buffer.allocUnsafeSlow(SIZE_BYTES));
    this.#end = this.#memory.copy(memory, 0, this.#start, this.#end);
    this.#start = 0;
    this.#memory = memory;
  }

  #larger(bytes: number): Buffer {
    return bytes === this.#memory.length ? this.#memory : Buffer.allocUnsafeSlow(bytes);
  }
}

/** A socket with a {@link ReadBuffer}. It emits no `data` events. */
export type BufferedSocket = Socket & { readonly reads: ReadBuffer };

/** Returns a function that connects as `connect` does, with a {@link ReadBuffer}. Bytes that arrive before `onBytes` is set destroy the socket. */
export const readIntoBuffer =
  (connect: ConnectWith): Connect<BufferedSocket> =>
  (url) => {
    const reads = new ReadBuffer((bytes) => {
      socket.destroy();
      return bytes.length;
    });
    const socket = Object.assign(connect(url, reads.onread), { reads });
    return socket;
  };
