import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { markUntransferable } from './frame-memory.js';
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
  #read: (bytes: Buffer) => void = (bytes) => this.#passLines(bytes);

  readonly #socket: Socket;
  readonly #isGone: Promise<void>;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    this.#isGone = new Promise((resolve) => socket.once('close', () => resolve()));
    socket
      .on('data', (bytes: Buffer) => {
        markUntransferable(bytes.buffer);
        this.#read(bytes);
      })
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
    const pass = (bytes: Buffer) => void this.push(bytes);
    if (this.readableLength > 0) {
      this.#read = pass;
      return false;
    }
    const reader = readFrames(handler, pass);
    reader.next();
    this.#read = (bytes) => {
      handler.read();
      const { done, value } = reader.next(bytes);
      if (!done) return;
      this.#read = pass;
      pass(value);
    };
    return true;
  }

  // Passes one line at a time. The head of the response ends with a line feed, so `handleFrames` is called before a frame is passed.
  #passLines(bytes: Buffer): void {
    const passLines = this.#read;
    let rest = bytes;
    while (rest.length > 0 && this.#read === passLines) {
      const end = rest.indexOf(LINE_FEED) + 1 || rest.length;
      this.push(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
    if (rest.length > 0) this.#read(rest);
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
