import { Duplex } from 'node:stream';
import type { BufferedSocket } from './read-buffer.js';
import { readFrames } from './read-frames.js';
import type { FrameHandler } from './whole-frames.js';

const LINE_FEED = 10;

/**
 * A socket for `ws` that reads the data frames itself.
 *
 * `ws` does the handshake over it. After {@link FrameSocket.handleFrames}, `ws` receives only control frames, fragments and invalid
 * frames. The socket is always read, even if a subscriber is slow: the service closes the connection with 1013 if the client does not
 * keep up (contract, section 7.3).
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
    if (this.readableLength > 0) {
      reads.onBytes = pass;
      return false;
    }
    const reader = readFrames(handler, pass);
    reader.next();
    reads.onBytes = (bytes) => {
      handler.read();
      try {
        const { done, value } = reader.next(bytes);
        if (done !== true) return value;
        reads.onBytes = pass;
        return value + pass(bytes.subarray(value));
      } finally {
        handler.readEnd();
      }
    };
    return true;
  }

  // Passes one line at a time. The head of the response ends with a line feed, so `handleFrames` is called before a frame is passed.
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
    // After `done`, `ws` reports the connection as closed. So wait for the `close` event: `destroyed` is true before the socket is closed.
    void this.#isGone.then(() => done(error));
  }
}
