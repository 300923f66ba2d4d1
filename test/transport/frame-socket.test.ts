import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { FrameSocket } from '../../src/transport/frame-socket.js';
import { type BufferedSocket, ReadBuffer } from '../../src/transport/read-buffer.js';
import { readInto } from '../support/read-into.js';
import { cuts, frameOf, serverBytes } from '../support/server-bytes.js';
import { cases } from '../support/cases.js';

const runs = Number(process.env['DIFFERENTIAL_RUNS'] ?? cases(1_500));
const maxFrameBytes = 66_000;
// The types of ws do not contain this option yet.
const limits = { maxPendingAutoPongs: 100_000 };

/** A socket whose other end is controlled by the test. */
class FakeSocket extends Duplex {
  request = '';
  readonly sent: Buffer[] = [];
  /** Reads in place, as a socket with the option `onread` does. Otherwise the socket emits `data` events. */
  readonly reads: ReadBuffer | undefined;

  constructor(isBuffered = false) {
    super();
    if (isBuffered) this.reads = new ReadBuffer((bytes) => bytes.length);
  }

  /** Sends bytes to the client, and waits until they are read. */
  async receives(bytes: Buffer): Promise<void> {
    if (this.reads) readInto(this.reads, bytes);
    else this.push(bytes);
    await turn();
  }
  /** Ends the stream of bytes, as Node does at the end of a connection. */
  ends(): void {
    this.push(null);
    if (this.reads) this.read(0);
  }
  override _read(): void {
    // The bytes are pushed by `receives`.
  }
  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.request.endsWith('\r\n\r\n')) this.sent.push(bytes);
    else this.request += bytes.toString('latin1');
    done();
  }
  override _final(done: () => void): void {
    done();
    this.ends();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

const accepted = ({ request }: FakeSocket): Buffer => {
  const key = /sec-websocket-key: (.+)\r\n/i.exec(request)?.[1] ?? '';
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  return Buffer.from(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
};

interface Seen {
  readonly events: unknown[];
  /** Frames that were emitted without ws. */
  direct: number;
  /** The payload of the close frame, reported before ws reports the close. */
  closed: unknown;
}

/** Returns what a client emits and answers for these bytes after its handshake. `isFrameSocket`: over a FrameSocket, otherwise over ws alone. */
const seenOf = async (bytes: Buffer, cut: (bytes: Buffer) => Buffer[], isFrameSocket: boolean): Promise<Seen> => {
  const fake = new FakeSocket(isFrameSocket);
  const socket = isFrameSocket ? new FrameSocket(fake as unknown as BufferedSocket) : fake;
  const seen: Seen = { events: [], direct: 0, closed: undefined };
  const { events } = seen;
  let received = 0;
  const frame = (data: Buffer, isBinary: boolean) => {
    received += 1;
    events.push([isBinary ? 'binary' : 'text', data.toString('base64')]);
  };
  const webSocket = new WebSocket('ws://service.example/', {
    ...limits,
    createConnection: () => socket as never,
    perMessageDeflate: false,
    maxPayload: maxFrameBytes,
    generateMask: (mask) => void mask.fill(0),
  });
  webSocket
    .on('open', () => {
      if (!isFrameSocket) return;
      const isOn = (socket as FrameSocket).handleFrames({
        read: () => events.push('read'),
        readEnd: () => undefined,
        frame: (bytes, start, end, isBinary, isAscii) => {
          seen.direct += 1;
          const data = bytes.subarray(start, end);
          // A text that is checked together with others may not be reported as ASCII.
          if (isAscii) expect([isBinary, data.every((byte) => byte < 128)]).toEqual([false, true]);
          frame(data, isBinary);
        },
        close: (payload) => {
          if (webSocket.readyState === WebSocket.CLOSING) seen.closed = payload.toString('base64');
        },
        framesReceived: () => received,
        isClosed: () => false,
        maxFrameBytes,
      });
      expect(isOn).toBe(true);
    })
    .on('message', frame)
    .on('ping', (data: Buffer) => events.push(['ping', data.toString('base64')]))
    .on('pong', (data: Buffer) => events.push(['pong', data.toString('base64')]))
    .on('error', (error: Error & { code?: string }) => events.push(['error', error.message, error.code]));
  const isGone = new Promise<void>((resolve) =>
    webSocket.on('close', (code, reason: Buffer) => {
      events.push(['close', code, reason.toString('base64')]);
      resolve();
    }),
  );
  while (!fake.request.endsWith('\r\n\r\n')) await turn();
  for (const piece of cut(Buffer.concat([accepted(fake), bytes]))) {
    events.push('chunk');
    await fake.receives(piece);
  }
  fake.ends();
  await isGone;
  events.push(['sent', Buffer.concat(fake.sent).toString('base64')]);
  return seen;
};

const inOrder = ({ events }: Seen) => events.filter((event) => Array.isArray(event));
/** Returns which events belong to which bytes: no event may be late. ws may report an invalid frame before its whole head has arrived. */
const inTime = ({ events }: Seen) =>
  events.filter((event) => event === 'chunk' || /text|binary|ping|pong/.test((event as string[])[0] ?? ''));

describe('a FrameSocket', () => {
  it(
    'emits exactly the events of ws, whatever a server sends and wherever the bytes are split',
    async () => {
      await fc.assert(
        fc.asyncProperty(serverBytes, cuts, async (bytes, cut) => {
          const [bare, frameSocket] = await Promise.all([seenOf(bytes, cut, false), seenOf(bytes, cut, true)]);
          expect(inOrder(frameSocket)).toEqual(inOrder(bare));
          expect(inTime(frameSocket)).toEqual(inTime(bare));
          if (frameSocket.closed !== undefined)
            expect(inOrder(bare).at(-2)).toEqual(closeEvent(frameSocket.closed as string));
        }),
        { numRuns: runs },
      );
    },
    60_000 + runs * 20,
  );

  const closeEvent = (payload: string): unknown[] => {
    const bytes = Buffer.from(payload, 'base64');
    return bytes.length === 0
      ? ['close', 1005, '']
      : ['close', bytes.readUInt16BE(0), bytes.subarray(2).toString('base64')];
  };
});

describe('the FrameSocket as a socket', () => {
  const pair = () => {
    const fake = new FakeSocket(true);
    const socket = new FrameSocket(fake as unknown as BufferedSocket);
    const passed: Buffer[] = [];
    return { fake, socket, read: () => socket.on('data', (bytes: Buffer) => passed.push(bytes)), passed };
  };
  const handler = (isClosed: () => boolean) => ({
    read: () => undefined,
    readEnd: () => undefined,
    frame: () => undefined,
    close: () => undefined,
    framesReceived: () => 0,
    isClosed,
    maxFrameBytes,
  });
  const text = frameOf(1, Buffer.from('a'));

  it('passes all bytes to ws after the handler is closed', async () => {
    const { fake, socket, read, passed } = pair();
    read();
    expect(socket.handleFrames(handler(() => true))).toBe(true);
    for (const bytes of [text, text, text]) await fake.receives(bytes);
    expect(Buffer.concat(passed)).toEqual(Buffer.concat([text, text, text]));
  });

  it('does not handle frames if it buffers bytes, and passes all bytes to ws', async () => {
    const { fake, socket, read, passed } = pair();
    socket.unshift(text);
    expect(socket.handleFrames(handler(() => false))).toBe(false);
    read();
    await fake.receives(text);
    expect(Buffer.concat(passed)).toEqual(Buffer.concat([text, text]));
  });

  it('ends, closes and fails with the inner socket, and ends it', async () => {
    const { fake, socket, read } = pair();
    read();
    socket.end();
    await turn();
    expect([fake.writableFinished, socket.readableEnded]).toEqual([true, true]);

    const closed = pair();
    closed.fake.destroy();
    await turn();
    expect(closed.socket.destroyed).toBe(true);

    const failed = pair();
    const errors: unknown[] = [];
    failed.socket.on('error', (error) => errors.push(error));
    failed.fake.destroy(new Error('reset'));
    await turn();
    expect(errors).toEqual([new Error('reset')]);

    const destroyed = pair();
    destroyed.socket.destroy();
    expect(destroyed.fake.destroyed).toBe(true);
  });
});

describe('frames without fragmentation', () => {
  const whole = (bytes: Buffer) => [bytes];
  const halves = (bytes: Buffer) => [bytes.subarray(0, bytes.length - 3), bytes.subarray(bytes.length - 3)];
  const fragments = [frameOf(1, Buffer.from('a'), false), frameOf(9, Buffer.from('?')), frameOf(0, Buffer.from('b'))];
  const some = [frameOf(1, Buffer.from('one')), frameOf(2, Buffer.alloc(300)), frameOf(1, Buffer.alloc(65_600, 'x'))];

  it.each([
    ['complete, with the answer to the handshake', some, whole, 3],
    ['split', some, halves, 3],
    ['around pings', [...some, frameOf(9, Buffer.from('?')), ...some], whole, 6],
    ['before and after a fragmented message', [...some, ...fragments, ...some], whole, 6],
  ])('do not pass through ws: %s', async (_, frames, cut, direct) => {
    expect(await seenOf(Buffer.concat(frames), cut, true)).toMatchObject({ direct });
  });
});
