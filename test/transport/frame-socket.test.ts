import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { PayloadKind, ReceivedFrame } from '../../src/frames/received-frame.js';
import { type Frame, tradeFeed$ } from '../../src/index.js';
import { type BufferedSocket, FrameSocket, ReadBuffer } from '../../src/transport/frame-socket.js';
import { type FrameHandler, frameReader } from '../../src/transport/read-frames.js';
import { cases } from '../support/cases.js';
import { certificateFor } from '../support/certificate.js';
import { optionsFor } from '../support/feed.js';
import { cuts, serverBytes } from '../support/server-bytes.js';
import { close, type HandshakeStep, startWire, switching, switchingFor, wsFrame } from '../support/wire.js';

const runs = Number(process.env['DIFFERENTIAL_RUNS'] ?? cases(500));
const maxFrameBytes = 66_000;
// The types of ws don't have this option yet.
const limits = { maxPendingAutoPongs: 100_000 };

/** Delivers bytes to a buffer like Node: in reads no larger than the space in the buffer. */
const readInto = (reads: ReadBuffer, bytes: Buffer): void => {
  for (let at = 0; at < bytes.length;) {
    const buffer = space(reads);
    const length = bytes.copy(buffer, 0, at);
    at += length;
    reads.onread.callback(length, buffer);
  }
};
const space = ({ onread }: ReadBuffer): Buffer => (onread.buffer as () => Buffer)();

/** A socket whose other end the test controls. */
class FakeSocket extends Duplex {
  request = '';
  readonly sent: Buffer[] = [];
  /** Reads in place, like a socket with the option `onread`. If missing, the socket emits `data` events. */
  readonly reads: ReadBuffer | undefined;

  constructor(isBuffered = false) {
    super();
    if (isBuffered) this.reads = new ReadBuffer((bytes) => bytes.length);
  }

  /** Sends bytes to the client, and waits until it has read them. */
  async receives(bytes: Buffer): Promise<void> {
    if (this.reads) readInto(this.reads, bytes);
    else this.push(bytes);
    await turn();
  }
  /** Ends the stream of bytes, as Node does when a connection ends. */
  ends(): void {
    this.push(null);
    if (this.reads) this.read(0);
  }
  override _read(): void {
    // `receives` pushes the bytes.
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

const accepted = ({ request }: FakeSocket): Buffer =>
  Buffer.from(switchingFor(/sec-websocket-key: (.+)\r\n/i.exec(request)?.[1], ''));

interface Seen {
  readonly events: unknown[];
  /** Frames emitted without ws. */
  direct: number;
  /** The close frame's payload, reported before ws reports the close. */
  closed: unknown;
}

/** Returns what a client emits and answers for these bytes after its handshake, over a FrameSocket or over bare ws. */
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
        frame: (bytes, start, end, kind) => {
          seen.direct += 1;
          const data = bytes.subarray(start, end);
          // A text checked together with others may not be reported as ASCII.
          if (kind === PayloadKind.Ascii) expect(data.every((byte) => byte < 128)).toBe(true);
          frame(data, kind === PayloadKind.Binary);
        },
        close: (payload) => {
          if (webSocket.readyState === WebSocket.CLOSING) seen.closed = payload.toString('base64');
        },
        get framesReceived() {
          return received;
        },
        isClosed: false,
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
/**
 * Returns which bytes led to which events, as none may be late. ws may report an invalid frame before its whole head.
 */
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

/** Handles frames without keeping any. */
const handlerOf = (isClosed: boolean): FrameHandler => ({
  read: () => undefined,
  readEnd: () => undefined,
  frame: () => undefined,
  close: () => undefined,
  framesReceived: 0,
  isClosed,
  maxFrameBytes: 70_000,
});

describe('the FrameSocket as a socket', () => {
  const pair = () => {
    const fake = new FakeSocket(true);
    const socket = new FrameSocket(fake as unknown as BufferedSocket);
    const passed: Buffer[] = [];
    return { fake, socket, read: () => socket.on('data', (bytes: Buffer) => passed.push(bytes)), passed };
  };
  const text = wsFrame(1, Buffer.from('a'));

  it('passes all bytes to ws once the handler is closed', async () => {
    const { fake, socket, read, passed } = pair();
    read();
    expect(socket.handleFrames(handlerOf(true))).toBe(true);
    for (const bytes of [text, text, text]) await fake.receives(bytes);
    expect(Buffer.concat(passed)).toEqual(Buffer.concat([text, text, text]));
  });

  it("doesn't handle frames if bytes are already buffered, and passes all bytes to ws", async () => {
    const { fake, socket, read, passed } = pair();
    socket.unshift(text);
    expect(socket.handleFrames(handlerOf(false))).toBe(false);
    read();
    await fake.receives(text);
    expect(Buffer.concat(passed)).toEqual(Buffer.concat([text, text]));
  });

  it('ends, closes and fails along with the inner socket, and ends it', async () => {
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
  const fragments = [wsFrame(1, Buffer.from('a'), false), wsFrame(9, Buffer.from('?')), wsFrame(0, Buffer.from('b'))];
  const some = [wsFrame(1, Buffer.from('one')), wsFrame(2, Buffer.alloc(300)), wsFrame(1, Buffer.alloc(65_600, 'x'))];

  it.each([
    ['complete, with the answer to the handshake', some, whole, 3],
    ['split', some, halves, 3],
    [
      'split after two bytes of a head of four',
      some.slice(0, 2),
      (bytes: Buffer) => [bytes.subarray(0, -302), bytes.subarray(-302)],
      2,
    ],
    ['around pings', [...some, wsFrame(9, Buffer.from('?')), ...some], whole, 6],
    ['before and after a fragmented message', [...some, ...fragments, ...some], whole, 6],
  ])('do not pass through ws: %s', async (_, frames, cut, direct) => {
    expect(await seenOf(Buffer.concat(frames), cut, true)).toMatchObject({ direct });
  });
});

/** Bytes that show their position. */
const pattern = Buffer.from(Uint8Array.from({ length: 301_000 }, (_, n) => n % 251));

describe('a ReadBuffer', () => {
  it('offers all bytes in order until they are consumed, wherever reads end and however many are consumed', () => {
    const step = fc.record({
      bytes: fc.constantFrom(1, 300, 70_000, 300_000),
      used: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let [sent, used, share] = [0, 0, 0];
        const reads = new ReadBuffer((bytes) => {
          for (const at of [0, bytes.length >> 1, bytes.length - 1]) expect(bytes[at]).toBe((used + at) % 251);
          const count = Math.floor(bytes.length * share);
          used += count;
          return count;
        });
        for (const { bytes, used: part } of steps) {
          share = part;
          readInto(reads, pattern.subarray(sent % 251, (sent % 251) + bytes));
          sent += bytes;
        }
        expect(used).toBeLessThanOrEqual(sent);
      }),
      { numRuns: 50 },
    );
  });

  it('reuses its memory once all bytes of a read are consumed', () => {
    const reads = new ReadBuffer((bytes) => bytes.length);
    readInto(reads, Buffer.alloc(1));
    const first = space(reads);
    for (let n = 0; n < 5; n += 1) {
      readInto(reads, Buffer.alloc(1_000));
      expect(space(reads)).toBe(first);
    }
  });

  it('grows for a larger frame, and shrinks back afterwards', () => {
    let wanted = 1;
    const reads = new ReadBuffer((bytes) => (bytes.length < wanted ? 0 : bytes.length));
    readInto(reads, Buffer.alloc(1));
    const { length } = space(reads);
    wanted = 10 * length;
    readInto(reads, Buffer.alloc(wanted - 1));
    expect(space(reads).buffer.byteLength).toBeGreaterThan(wanted);
    expect(space(reads).buffer.byteLength).toBeLessThanOrEqual(4 * wanted);
    readInto(reads, Buffer.alloc(1));
    wanted = 1;
    expect(space(reads).buffer.byteLength).toBe(length);
  });

  it('is small until the first read, and always has room for another read', () => {
    const reads = new ReadBuffer(() => 0);
    expect(space(reads).buffer.byteLength).toBeLessThanOrEqual(4 * 1024);
    readInto(reads, Buffer.alloc(1));
    for (let n = 0; n < 40; n += 1) {
      expect(space(reads).length).toBeGreaterThanOrEqual(64 * 1024);
      readInto(reads, Buffer.alloc(10_000));
    }
  });
});

/** Frames that fill several reads. */
const many = Array.from({ length: 400 }, (_, n) => ({
  opcode: n % 2 === 0 ? 1 : 2,
  text: `${n} of many `.padEnd(900, n % 3 === 0 ? '€' : 'x'),
}));

const sendMany: HandshakeStep = (peer) => {
  const sent = [...many.map(({ opcode, text }) => wsFrame(opcode, text)), close(4001, 'done')];
  peer.socket.write(Buffer.concat([Buffer.from(switching(peer)), ...sent]));
};

// The operators that keep frames, and feeds that end within a read, are in test/e2e/held-frames.test.ts.
it.each([
  ['plain', undefined],
  ['over TLS', await certificateFor()],
] as const)(
  'frames keep their bytes until the feed stops, and are leased until `next` returns if ws read them: %s',
  async (_, tls) => {
    await using wire = await startWire({ handshake: [sendMany], ...(tls && { tls }) });
    const agent = tls ? new HttpsAgent() : new HttpAgent();
    for (const more of [{}, { agent }]) {
      const received: ReceivedFrame[] = [];
      const stillLeased: Frame[] = [];
      await new Promise((resolve) => {
        tradeFeed$('market', optionsFor(wire, { ...(tls && { tls: { ca: tls.cert } }), ...more })).subscribe({
          next: (frame) => {
            const last = received.at(-1);
            if (last?.payload.isLeased) stillLeased.push(last);
            if (frame instanceof ReceivedFrame) received.push(frame);
          },
          error: resolve,
        });
      });
      expect(received.map((frame) => frame.text())).toEqual(many.map((each) => each.text));
      expect(received.at(-1)?.payload.isLeased).toBe(false);
      if ('agent' in more) expect(stillLeased).toEqual([]);
    }
    agent.destroy();
  },
);

it('frameReader passes the rest of a read to ws as it came if the handler closes', () => {
  const texts = ['é', 'é'.repeat(60), 'é'.repeat(200), 'last'].map((text) => wsFrame(1, text));
  const passed: Buffer[] = [];
  const handler = { ...handlerOf(false), isClosed: false, frame: () => void (handler.isClosed = true) };
  frameReader(handler, (piece) => passed.push(Buffer.from(piece)))(Buffer.concat(texts));
  expect(Buffer.concat(passed)).toEqual(Buffer.concat(texts.slice(1)));
});

// RFC 6455, 5.2. ws reports what is wrong, and the property above has such heads often enough only in CI.
it.each([
  ['a reserved bit', 0xc1, 0],
  ['a mask', 0x81, 0x80],
  ['an unknown opcode', 0x83, 0],
  ['a ping in fragments', 0x09, 0],
])('frameReader passes everything to ws from an invalid frame on: %s', (_, ...head) => {
  const bytes = Buffer.concat([Buffer.from(head), wsFrame(1, 'a')]);
  const passed: Buffer[] = [];
  frameReader(handlerOf(false), (piece) => passed.push(piece))(bytes);
  expect(Buffer.concat(passed)).toEqual(bytes);
});

it('frameReader checks many small texts at once, even if an invalid one follows', () => {
  const many = Buffer.concat([
    ...Array.from({ length: 1_000 }, () => wsFrame(1, Buffer.from('€'))),
    wsFrame(1, Buffer.of(255)),
  ]);
  let checked = 0;
  const subarray = many.subarray.bind(many);
  many.subarray = (from = 0, to = many.length) => {
    checked += to - from;
    return subarray(from, to);
  };
  const emitted: unknown[] = [];
  const passed: Buffer[] = [];
  const handler = { ...handlerOf(false), frame: (...frame: unknown[]) => void emitted.push(frame) };
  frameReader(handler, (bytes) => passed.push(Buffer.from(bytes)))(many);
  expect(Buffer.concat(passed)).toHaveLength(3);
  expect(emitted).toHaveLength(1_000);
  // Checking all texts for each text would check 1,000 times as much.
  expect(checked).toBeLessThan(10 * many.length);
});
