import type { OnReadOpts, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Connect, ConnectWith } from './connect.js';
import { type FrameHandler, frameReader } from './read-frames.js';

const LINE_FEED = 10;

/**
 * A socket for `ws` that reads the data frames itself.
 *
 * `ws` does the handshake over it. After {@link FrameSocket.handleFrames}, `ws` receives only control frames, fragments
 * and invalid frames. The socket is always read, even if a subscriber is slow: the service closes the connection with
 * 1013 if the client does not keep up (contract, section 7.3).
 */
export class FrameSocket extends Duplex {
  readonly #socket: BufferedSocket;
  readonly #isGone: Promise<void>;

  constructor(socket: BufferedSocket) {
    super();
    this.#socket = socket;
    this.#isGone = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.reads.onBytes = (bytes) => this.#passLines(bytes);
    socket
      .on('end', () => this.push(null))
      .on('error', (error) => this.destroy(error))
      .on('close', () => this.destroy());
  }

  /**
   * Starts to read the data frames of the connection. Call it when the handshake is done.
   *
   * @returns `false` if bytes after the handshake response already wait for `ws`, which then reads all frames
   */
  handleFrames(handler: FrameHandler): boolean {
    const { reads } = this.#socket;
    // `ws` may store bytes, and the memory of a read is used again.
    const pass = (bytes: Buffer): number => {
      if (bytes.length > 0) this.push(Buffer.from(bytes));
      return bytes.length;
    };
    const isEarly = this.readableLength === 0;
    const read = frameReader(handler, pass);
    const readInPlace = (bytes: Buffer): number => {
      handler.read();
      try {
        return read(bytes);
      } finally {
        handler.readEnd();
      }
    };
    reads.onBytes = isEarly ? readInPlace : pass;
    return isEarly;
  }

  // Passes one line at a time. The head of the response ends with a line feed, so `handleFrames` is called before a
  // frame is passed.
  #passLines(bytes: Buffer): number {
    const { reads } = this.#socket;
    const passLines = reads.onBytes;
    for (let at = 0; at < bytes.length;) {
      const end = bytes.indexOf(LINE_FEED, at) + 1 || bytes.length;
      this.push(Buffer.from(bytes.subarray(at, end)));
      at = end;
      if (reads.onBytes !== passLines) return at + (at < bytes.length ? reads.onBytes(bytes.subarray(at)) : 0);
    }
    return bytes.length;
  }

  override _read(): void {
    // The socket is in flowing mode.
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    // After `done`, `ws` reports the connection as closed. So wait for the `close` event: `destroyed` is true before
    // the socket is closed.
    void this.#isGone.then(() => done(error));
  }
}

/** Size of the buffer until the first read. Most connections of a reconnect, and all spare ones, need no more. */
const FIRST_BYTES = 4 * 1024;

/** Size of the buffer after the first read: few system calls, and it fits into the cache of a CPU. */
const SIZE_BYTES = 512 * 1024;

/** A read has at least this much space. It is more than a TLS record. */
const LEAST_FREE_BYTES = 128 * 1024;

/**
 * The buffer into which all reads of a socket go. No read allocates memory.
 *
 * Bytes that were not used in a read, such as the beginning of a frame, stay in the buffer, and the next read is behind
 * them. So a frame that arrives in several reads is in one piece. If it needs more than half of the buffer, the buffer
 * grows.
 */
export class ReadBuffer {
  /**
   * Handles the unused bytes after a read. Returns how many of them are used now. Their memory is used again when it
   * returns.
   */
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
    let memory = this.#memory;
    if (bytes <= SIZE_BYTES) memory = this.#usual ??= Buffer.allocUnsafeSlow(SIZE_BYTES);
    else if (bytes !== memory.length) memory = Buffer.allocUnsafeSlow(bytes);
    this.#end = this.#memory.copy(memory, 0, this.#start, this.#end);
    this.#start = 0;
    this.#memory = memory;
  }
}

export type BufferedSocket = Socket & { readonly reads: ReadBuffer };

/** Bytes that arrive before `onBytes` is set destroy the socket. */
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
