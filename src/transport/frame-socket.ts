import type { OnReadOpts, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Connect, ConnectWith } from './connect.js';
import { type FrameHandler, frameReader } from './read-frames.js';

const LINE_FEED = 10;

/**
 * A socket for `ws` that reads data frames itself.
 *
 * `ws` does the handshake over it. After {@link FrameSocket.handleFrames}, `ws` gets only control frames, fragments and
 * invalid frames. The socket keeps reading even if a subscriber is slow, because the service closes the connection with
 * 1013 if the client doesn't keep up (contract, section 7.3).
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
   * Starts reading the connection's data frames. Call it once the handshake is done.
   *
   * @returns `false` if bytes after the handshake response already wait for `ws`, which then reads all frames
   */
  handleFrames(handler: FrameHandler): boolean {
    const { reads } = this.#socket;
    // Copies, because `ws` may store bytes and the read buffer is reused.
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

  // Passes one line at a time. The response's head ends with a line feed, so `handleFrames` is called before any frame
  // is passed.
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
    // After `done`, `ws` reports the connection as closed. `destroyed` is true before the socket has closed, so wait
    // for the `close` event.
    void this.#isGone.then(() => done(error));
  }
}

/** Size of the buffer until the first read. Spare connections, and most others while reconnecting, need no more. */
const FIRST_BYTES = 4 * 1024;

/** Size of the buffer after the first read: few system calls, and it fits into a CPU cache. */
const SIZE_BYTES = 512 * 1024;

/** The least space for a read: more than a TLS record. */
const LEAST_FREE_BYTES = 128 * 1024;

/**
 * Receives everything a socket reads, without allocating memory for it.
 *
 * Unconsumed bytes (say, half a frame) stay put, and the next read is appended, so a frame that arrives in several
 * reads ends up in one piece. If it needs more than half of the buffer, the buffer grows.
 */
export class ReadBuffer {
  /**
   * Handles the unconsumed bytes after a read and returns how many it consumed. Their memory is reused when it returns.
   */
  onBytes: (bytes: Buffer) => number;

  /** The socket's option `onread`. */
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

/** Makes sockets read into a buffer. Bytes that arrive before `onBytes` is set destroy the socket. */
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
