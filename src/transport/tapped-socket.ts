import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { frameTap } from './frame-tap.js';
import { markShared } from './mark-shared.js';
import type { Tap } from './tap.js';

const LINE_FEED = 10;

/**
 * A socket for `ws`, whose bytes are read here first.
 *
 * `ws` does the handshake over it; from {@link TappedSocket.tap} on it gets those bytes alone that the tap leaves to it. The bytes
 * are read as they come, whoever may be slow: a client that does not read is closed with 1013 (contract, section 6).
 */
export class TappedSocket extends Duplex {
  #read: (bytes: Buffer) => void = (bytes) => this.#passLines(bytes);

  readonly #socket: Socket;
  readonly #isGone: Promise<void>;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    this.#isGone = new Promise((resolve) => socket.once('close', () => resolve()));
    socket
      .on('data', (bytes: Buffer) => {
        markShared(bytes.buffer);
        this.#read(bytes);
      })
      .on('end', () => this.push(null))
      .on('error', (error) => this.destroy(error))
      .on('close', () => this.destroy());
  }

  /**
   * Reads the frames of the connection from here on, once its handshake is done.
   *
   * @returns whether it can: bytes that came with the answer to the handshake, and were taken for a part of it, are not seen
   */
  tap(tap: Tap): boolean {
    const pass = (bytes: Buffer) => void this.push(bytes);
    if (this.readableLength > 0) {
      this.#read = pass;
      return false;
    }
    const reader = frameTap(tap, pass);
    reader.next();
    this.#read = (bytes) => {
      tap.read();
      const { done, value } = reader.next(bytes);
      if (!done) return;
      this.#read = pass;
      pass(value);
    };
    return true;
  }

  // The head of the answer ends with a line: so the tap is on, or not, before the first byte of a frame.
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
    // The socket flows by itself.
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    // Then ws says that the connection is closed: so it has to be. A socket calls itself closed before it is.
    void this.#isGone.then(() => done(error));
  }
}
