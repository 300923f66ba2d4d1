import { describe, expect, it } from '@jest/globals';
import { readFrames } from '../../src/transport/read-frames.js';
import type { FrameHandler } from '../../src/transport/whole-frames.js';
import { frameOf } from '../support/server-bytes.js';

const sizes = [3, 125, 126, 127, 300, 65_000];
const texts = [...sizes.map((size) => Buffer.from('é'.repeat(size / 2) + 'x'.repeat(size % 2))), Buffer.from('last')];
const framed = (payloads: readonly Buffer[], opcode = 1) =>
  Buffer.concat(payloads.map((payload) => frameOf(opcode, payload)));

/** Starts a reader that is closed after some frames, and collects what it emits and passes on. */
const startReader = (most = Infinity) => {
  const emitted: Buffer[] = [];
  const kinds: string[] = [];
  const passed: Buffer[] = [];
  const handler: FrameHandler = {
    read: () => undefined,
    readEnd: () => undefined,
    frame: (bytes, start, end, isBinary, isAscii) => {
      emitted.push(bytes.subarray(start, end));
      kinds.push(isBinary ? 'binary' : isAscii ? 'ascii' : 'text');
    },
    close: () => undefined,
    framesReceived: () => emitted.length,
    isClosed: () => emitted.length >= most,
    maxFrameBytes: 70_000,
  };
  const reader = readFrames(handler, (bytes) => passed.push(Buffer.from(bytes)));
  reader.next();
  let unused: Buffer = Buffer.alloc(0);
  return {
    emitted,
    kinds,
    read: (more: Buffer) => {
      // The bytes that the reader did not use come again, before the next ones.
      const bytes = unused.length === 0 ? more : Buffer.concat([unused, more]);
      const { done, value } = reader.next(bytes);
      unused = bytes.subarray(value);
      if (done) passed.push(unused);
      return { isDone: done === true, passed: Buffer.concat(passed) };
    },
  };
};

describe('readFrames', () => {
  it('does not change the bytes', () => {
    const bytes = framed(texts);
    const before = Buffer.from(bytes);
    startReader().read(bytes);
    expect(bytes.equals(before)).toBe(true);
  });

  it.each([
    ['in one turn', Infinity],
    ['in several turns', 5],
  ])('distinguishes ASCII, other texts and binary frames, read %s', (_, most) => {
    const payloads = [Buffer.from('ASCII alone'), Buffer.from('a sum in €'), Buffer.from([0xe2, 0x82])];
    const { kinds, read } = startReader();
    payloads.forEach((payload, n) => {
      const bytes = frameOf(n === 2 ? 2 : 1, payload);
      for (let at = 0; at < bytes.length; at += most) read(bytes.subarray(at, at + most));
    });
    expect(kinds).toEqual(['ascii', 'text', 'binary']);
  });

  it.each([
    ['texts', 1],
    ['binary frames', 2],
  ])('passes the rest to ws if the handler is closed during a read: %s', (_, opcode) => {
    const all = framed(texts, opcode);
    const rest = framed(texts.slice(2), opcode);
    const { emitted, read } = startReader(2);
    expect(read(all).passed.equals(rest)).toBe(true);
    expect(emitted).toHaveLength(2);
  });

  it('emits the texts before an invalid one, and passes the invalid one and all later bytes to ws', () => {
    const bad = frameOf(1, Buffer.of(0xc3));
    const { emitted, read } = startReader();
    const { isDone, passed } = read(Buffer.concat([framed(texts), bad, framed(texts)]));
    expect(emitted).toHaveLength(7);
    expect(isDone).toBe(true);
    expect(passed.equals(Buffer.concat([bad, framed(texts)]))).toBe(true);
  });

  it('checks each text separately: a character that is split by a head is invalid', () => {
    const euro = Buffer.from('€');
    const bytes = Buffer.concat([frameOf(1, euro.subarray(0, 1)), frameOf(1, euro.subarray(1))]);
    const { emitted, read } = startReader();
    expect(read(bytes).passed.equals(bytes)).toBe(true);
    expect(emitted).toEqual([]);
  });

  it('emits a frame that arrived in several turns in one piece, and uses none of its bytes before', () => {
    const frame = frameOf(2, Buffer.alloc(50_000, 7));
    const { emitted, read } = startReader();
    for (let at = 0; at < frame.length; at += 16_384) {
      expect(emitted).toEqual([]);
      read(frame.subarray(at, at + 16_384));
    }
    expect(emitted).toEqual([Buffer.alloc(50_000, 7)]);
  });

  it('checks many small texts before an invalid one at once', () => {
    const many = Buffer.concat([
      ...Array.from({ length: 20_000 }, () => frameOf(1, Buffer.from('€'))),
      frameOf(1, Buffer.of(255)),
    ]);
    const { emitted, read } = startReader();
    const started = process.cpuUsage();
    expect(read(many).isDone).toBe(true);
    expect(emitted).toHaveLength(20_000);
    // A check of all texts for each text would take minutes.
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000);
  });
});
