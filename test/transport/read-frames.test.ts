import { describe, expect, it } from '@jest/globals';
import { PayloadKind } from '../../src/frames/received-frame.js';
import { type FrameHandler, frameReader } from '../../src/transport/read-frames.js';
import { wsFrame } from '../support/wire.js';

const sizes = [3, 125, 126, 127, 300, 65_000];
const texts = [...sizes.map((size) => Buffer.from('é'.repeat(size / 2) + 'x'.repeat(size % 2))), Buffer.from('last')];
const framed = (payloads: readonly Buffer[], opcode = 1) =>
  Buffer.concat(payloads.map((payload) => wsFrame(opcode, payload)));

/** Starts a reader that closes after some frames, and collects what it emits and passes on. */
const startReader = (most = Infinity) => {
  const emitted: Buffer[] = [];
  const kinds: PayloadKind[] = [];
  const passed: Buffer[] = [];
  const handler: FrameHandler = {
    read: () => undefined,
    readEnd: () => undefined,
    frame: (bytes, start, end, kind) => {
      emitted.push(bytes.subarray(start, end));
      kinds.push(kind);
    },
    close: () => undefined,
    get framesReceived() {
      return emitted.length;
    },
    get isClosed() {
      return emitted.length >= most;
    },
    maxFrameBytes: 70_000,
  };
  const read = frameReader(handler, (bytes) => passed.push(Buffer.from(bytes)));
  let unused: Buffer = Buffer.alloc(0);
  return {
    emitted,
    kinds,
    read: (more: Buffer) => {
      // Bytes that the reader didn't consume come again, before the next ones.
      const bytes = unused.length === 0 ? more : Buffer.concat([unused, more]);
      unused = bytes.subarray(read(bytes));
      return Buffer.concat(passed);
    },
  };
};

describe('frameReader', () => {
  it.each([
    ['texts', 1],
    ['binary frames', 2],
  ])('passes the rest to ws if the handler closes during a read: %s', (_, opcode) => {
    const all = framed(texts, opcode);
    const rest = framed(texts.slice(2), opcode);
    const { emitted, read } = startReader(2);
    expect(read(all).equals(rest)).toBe(true);
    expect(emitted).toHaveLength(2);
  });

  it('checks each text separately, so a character split by a head is invalid', () => {
    const euro = Buffer.from('€');
    const bytes = Buffer.concat([wsFrame(1, euro.subarray(0, 1)), wsFrame(1, euro.subarray(1))]);
    const { emitted, read } = startReader();
    expect(read(bytes).equals(bytes)).toBe(true);
    expect(emitted).toEqual([]);
  });

  it('checks many small texts at once, even if an invalid one follows', () => {
    const many = Buffer.concat([
      ...Array.from({ length: 20_000 }, () => wsFrame(1, Buffer.from('€'))),
      wsFrame(1, Buffer.of(255)),
    ]);
    const { emitted, read } = startReader();
    const started = process.cpuUsage();
    expect(read(many)).toHaveLength(3);
    expect(emitted).toHaveLength(20_000);
    // Checking all texts for each text would take minutes.
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000);
  });

  // RFC 6455, 5.2, byte by byte. ws reports what's wrong.
  it.each([
    ['a reserved bit', [0xc1, 0]],
    ['another reserved bit', [0xa1, 0]],
    ['the third reserved bit', [0x91, 0]],
    ['a mask', [0x81, 0x80]],
    ['an unknown data opcode', [0x83, 0]],
    ['an unknown control opcode', [0x8b, 0]],
    ['a ping in fragments', [0x09, 0]],
    ['a close frame of more than 125 bytes', [0x88, 126, 0, 126]],
    ['text that is not UTF-8', [0x81, 1, 0xc3]],
  ])('emits the frames before an invalid one, then passes everything to ws: %s', (_, invalid) => {
    const bytes = Buffer.concat([Buffer.from(invalid), framed(texts)]);
    const { emitted, read } = startReader();
    expect(read(Buffer.concat([framed(texts), bytes])).equals(bytes)).toBe(true);
    expect(emitted).toHaveLength(7);
  });
});
