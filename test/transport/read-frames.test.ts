import { describe, expect, it } from '@jest/globals';
import { readFrames } from '../../src/transport/read-frames.js';
import type { FrameHandler } from '../../src/transport/whole-frames.js';
import { frameOf } from '../support/server-bytes.js';

const sizes = [3, 125, 126, 127, 300, 65_000];
const texts = [...sizes.map((size) => Buffer.from('é'.repeat(size / 2) + 'x'.repeat(size % 2))), Buffer.from('last')];
const framed = (payloads: readonly Buffer[], opcode = 1) =>
  Buffer.concat(payloads.map((payload) => frameOf(opcode, payload)));

/** A tap that is closed after so many frames, and what it emitted and passed on. */
const startReader = (most = Infinity) => {
  const emitted: Buffer[] = [];
  const kinds: string[] = [];
  const passed: Buffer[] = [];
  const handler: FrameHandler = {
    read: () => undefined,
    frame: (data, isBinary, isAscii) => {
      emitted.push(data);
      kinds.push(isBinary ? 'binary' : isAscii ? 'ascii' : 'text');
    },
    close: () => undefined,
    framesReceived: () => emitted.length,
    isClosed: () => emitted.length >= most,
    maxFrameBytes: 70_000,
  };
  const reader = readFrames(handler, (bytes) => passed.push(Buffer.from(bytes)));
  reader.next();
  return {
    emitted,
    kinds,
    read: (bytes: Buffer) => {
      const { done, value } = reader.next(bytes);
      if (done) passed.push(value);
      return { isDone: done === true, passed: Buffer.concat(passed) };
    },
  };
};

describe('a tap', () => {
  it('leaves the bytes as they were', () => {
    const bytes = framed(texts);
    const before = Buffer.from(bytes);
    startReader().read(bytes);
    expect(bytes.equals(before)).toBe(true);
  });

  it.each([
    ['in one turn', Infinity],
    ['in several turns', 5],
  ])('tells what is ASCII alone from other texts and from bytes, read %s', (_, most) => {
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
  ])('that is closed within what was read leaves the rest to ws: %s', (_, opcode) => {
    const all = framed(texts, opcode);
    const rest = framed(texts.slice(2), opcode);
    const { emitted, read } = startReader(2);
    expect(read(all).passed.equals(rest)).toBe(true);
    expect(emitted).toHaveLength(2);
  });

  it('tells the texts before one that is not valid, and leaves that one to ws with all that follows', () => {
    const bad = frameOf(1, Buffer.of(0xc3));
    const { emitted, read } = startReader();
    const { isDone, passed } = read(Buffer.concat([framed(texts), bad, framed(texts)]));
    expect(emitted).toHaveLength(7);
    expect(isDone).toBe(true);
    expect(passed.equals(Buffer.concat([bad, framed(texts)]))).toBe(true);
  });

  it('does not join texts in its check: a character that is cut by a head is not valid', () => {
    const euro = Buffer.from('€');
    const bytes = Buffer.concat([frameOf(1, euro.subarray(0, 1)), frameOf(1, euro.subarray(1))]);
    const { emitted, read } = startReader();
    expect(read(bytes).passed.equals(bytes)).toBe(true);
    expect(emitted).toEqual([]);
  });

  it('gives a frame that was read in several turns bytes of its own', () => {
    const frame = frameOf(2, Buffer.alloc(50_000, 7));
    const { emitted, read } = startReader();
    for (let at = 0; at < frame.length; at += 16_384) read(frame.subarray(at, at + 16_384));
    expect(emitted.map((data) => [data.length, data.buffer.byteLength, data.byteOffset])).toEqual([
      [50_000, 50_000, 0],
    ]);
  });

  it('reads many small texts before a wrong one in one go', () => {
    const many = Buffer.concat([
      ...Array.from({ length: 20_000 }, () => frameOf(1, Buffer.from('€'))),
      frameOf(1, Buffer.of(255)),
    ]);
    const { emitted, read } = startReader();
    const started = process.cpuUsage();
    expect(read(many).isDone).toBe(true);
    expect(emitted).toHaveLength(20_000);
    // One look at all of them for each of them takes minutes.
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000);
  });
});
