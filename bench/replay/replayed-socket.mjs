// A socket without a kernel: answers as a server does, then returns one chunk of 64 KiB in each turn of the event loop.
//
// Each read copies its bytes, as a kernel does: into the buffer of the option `onread`, or into one of a few Buffers for `data` events. A
// real socket allocates a Buffer for each `data` event, whose cost depends on the heap. The benchmark `e2e` measures it.
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { batch } from '../support/frames.mjs';
import { session, parsePath } from '../support/session.mjs';

const READ_BYTES = 65_536;

/** Cuts frames into the chunks that a socket would read. */
const chunksOf = (bytes) =>
  Array.from({ length: Math.ceil(bytes.length / READ_BYTES) }, (_, n) =>
    bytes.subarray(n * READ_BYTES, (n + 1) * READ_BYTES),
  );

/** Returns a function that copies bytes into the next one of a few Buffers. A receiver has used them before they are used again. */
const copier = () => {
  const buffers = Array.from({ length: 8 }, () => Buffer.alloc(READ_BYTES));
  let at = 0;
  return (bytes) => {
    at = (at + 1) % buffers.length;
    return buffers[at].subarray(0, bytes.copy(buffers[at]));
  };
};

/** A socket that answers as the server of `origin`. With `onread`, it reads into the buffer of the caller. */
export class ReplayedSocket extends net.Socket {
  #answers = [];
  #chunks = [];
  #at = 0;
  #isWanted = false;
  #copyOf = copier();
  #onread;
  #turn;

  constructor(origin, onread) {
    super();
    this.#onread = onread;
    this.#isWanted = onread !== undefined;
    this.connecting = true;
    const write = (bytes) => {
      this.#answers.push(bytes);
      this.#next();
    };
    const start = (path) => {
      this.#chunks = chunksOf(batch(parsePath(path)).bytes);
      this.#next();
    };
    this.respond = session({ origin, write, start });
    setImmediate(() => {
      this.connecting = false;
      this.emit('connect');
      this.emit('ready');
    });
  }

  _read() {
    this.#isWanted = true;
    this.#next();
  }

  _writev(parts, done) {
    for (const { chunk, encoding } of parts) this.respond(Buffer.from(chunk, encoding));
    done();
  }

  _write(chunk, encoding, done) {
    this._writev([{ chunk, encoding }], done);
  }

  _final(done) {
    done();
  }

  _destroy(error, done) {
    clearImmediate(this.#turn);
    done(error);
  }

  // As with a kernel, nothing is read while the stream is full or paused.
  #next() {
    if (
      this.destroyed ||
      !this.#isWanted ||
      this.#turn !== undefined ||
      this.#answers.length + this.#chunks.length === 0
    )
      return;
    this.#turn = setImmediate(() => {
      this.#turn = undefined;
      const bytes = this.#answers.shift() ?? this.#chunks[this.#at++ % this.#chunks.length];
      if (this.#onread) this.#readInto(this.#onread, bytes);
      else this.#isWanted = this.push(this.#copyOf(bytes));
      this.#next();
    });
  }

  // As many reads as the buffer needs: it may be smaller than a chunk.
  #readInto({ buffer, callback }, bytes) {
    for (let at = 0; at < bytes.length && !this.destroyed;) {
      const into = typeof buffer === 'function' ? buffer() : buffer;
      const length = bytes.copy(into, 0, at);
      callback(length, into);
      at += length;
    }
  }
}

/** Replaces `net.connect` for all modules that are imported later. */
export const replaySockets = (origin) => {
  const connect = ({ onread }) => new ReplayedSocket(origin, onread);
  Object.assign(net, { connect, createConnection: connect });
  http.Agent.prototype.createConnection = connect;
  syncBuiltinESMExports();
};
