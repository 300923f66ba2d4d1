// A socket without a kernel: answers as a server does, then returns one chunk of 64 KiB in each turn of the event loop.
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { batch } from '../support/frames.mjs';
import { session, parsePath } from '../support/session.mjs';

const READ_BYTES = 65_536;

/** Cuts frames into the chunks that a socket would read, each in separate memory. */
const chunksOf = (bytes) =>
  Array.from({ length: Math.ceil(bytes.length / READ_BYTES) }, (_, n) =>
    Buffer.from(new Uint8Array(bytes.subarray(n * READ_BYTES, (n + 1) * READ_BYTES)).buffer),
  );

class ReplayedSocket extends net.Socket {
  #answers = [];
  #chunks = [];
  #at = 0;
  #isWanted = false;
  #turn;

  constructor(origin) {
    super();
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

  // As with a kernel, nothing is read while the stream is full or paused.
  #next() {
    if (!this.#isWanted || this.#turn !== undefined || this.#answers.length + this.#chunks.length === 0) return;
    this.#turn = setImmediate(() => {
      this.#turn = undefined;
      this.#isWanted = this.push(this.#answers.shift() ?? this.#chunks[this.#at++ % this.#chunks.length]);
      this.#next();
    });
  }
}

/** Replaces `net.connect` for all modules that are imported later. */
export const replaySockets = (origin) => {
  const connect = () => new ReplayedSocket(origin);
  Object.assign(net, { connect, createConnection: connect });
  http.Agent.prototype.createConnection = connect;
  syncBuiltinESMExports();
};
