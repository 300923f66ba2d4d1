import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inspect } from 'node:util';
import { createLease } from '../../src/transport/lease.js';
import { ReceivedFrame } from '../../src/transport/received-frame.js';

/** A frame in the middle of memory that is used again. */
const received = (payload: Buffer, isBinary = false, isAscii = false) => {
  const memory = Buffer.concat([Buffer.from('before'), payload, Buffer.from('behind')]);
  const frame = new ReceivedFrame('raw', memory, 6, 6 + payload.length, isBinary, isAscii, 5, 2);
  return { frame, reuse: () => memory.fill('z') };
};

/** How a subscriber reads a frame. */
const looks = {
  text: (frame: ReceivedFrame) => frame.text(),
  data: (frame: ReceivedFrame) => frame.data.toString('latin1'),
  view: (frame: ReceivedFrame) => frame.view.toString('latin1'),
  byteLength: (frame: ReceivedFrame) => frame.byteLength,
};
const look = fc.constantFrom(...Object.values(looks));

const payload = fc.oneof(
  fc.string({ unit: 'binary-ascii' }).map((text) => ({ bytes: Buffer.from(text), isBinary: false, isAscii: true })),
  fc.string({ unit: 'grapheme' }).map((text) => ({ bytes: Buffer.from(text), isBinary: false, isAscii: false })),
  fc.constantFrom('\ufeffa byte order mark', '\ufffd', '\0').map((text) => ({
    bytes: Buffer.from(text),
    isBinary: false,
    isAscii: false,
  })),
  fc.uint8Array({ maxLength: 5_000 }).map((bytes) => ({ bytes: Buffer.from(bytes), isBinary: true, isAscii: false })),
);

describe('a received frame', () => {
  it('shows the same payload whenever and however it is read, also after its memory was used again', () => {
    fc.assert(
      fc.property(payload, fc.array(look), fc.array(look), ({ bytes, isBinary, isAscii }, during, later) => {
        const { frame, reuse } = received(bytes, isBinary, isAscii);
        const check = (read: (frame: ReceivedFrame) => unknown) => {
          const { text, byteLength } = looks;
          const expected =
            read === byteLength ? bytes.length : read === text ? bytes.toString() : bytes.toString('latin1');
          expect(read(frame)).toBe(expected);
        };
        during.forEach(check);
        frame.keep();
        reuse();
        later.forEach(check);
        Object.values(looks).forEach(check);
      }),
    );
  });

  it('returns the same Buffer at each access, with memory that no other read changes', () => {
    for (const when of ['during the read', 'after it']) {
      const { frame, reuse } = received(Buffer.from('payload'), when === 'after it');
      if (when === 'after it') frame.keep();
      const { data } = frame;
      frame.keep();
      reuse();
      expect(frame.data).toBe(data);
      expect(String(data)).toBe('payload');
    }
  });

  it('keeps no read buffer alive after its payload was read', () => {
    const reads: readonly ((frame: ReceivedFrame) => unknown)[] = [
      (frame) => frame.text(),
      (frame) => frame.data,
      (frame) => frame.keep(),
      (frame) => frame.release(),
    ];
    for (const read of reads) {
      const { frame } = received(Buffer.from('payload'));
      expect(frame.isLeased).toBe(true);
      read(frame);
      expect(frame.isLeased).toBe(false);
    }
  });

  it('is printed with its data', () => {
    const { frame } = received(Buffer.from('ab'));
    const plain = {
      type: 'frame',
      feed: 'raw',
      data: Buffer.from('ab'),
      isBinary: false,
      receivedAt: 5,
      connection: 2,
    };
    expect(JSON.parse(JSON.stringify(frame))).toEqual(JSON.parse(JSON.stringify(plain)));
    expect(inspect(frame)).toContain('<Buffer 61 62>');
  });
});

describe('a lease', () => {
  it('keeps at its end the frames that no subscriber has read, and no others', () => {
    const frames = ['text', 'data', 'never'].map((word) => received(Buffer.from(word)));
    const reads = [(frame: ReceivedFrame) => frame.text(), (frame: ReceivedFrame) => frame.data, () => undefined];
    const next = [...reads];
    const lease = createLease((frame) => next.shift()?.(frame));
    for (const { frame } of frames) lease.emit(frame);
    expect(frames.map(({ frame }) => frame.isLeased)).toEqual([false, false, true]);
    lease.end();
    expect(frames.map(({ frame }) => frame.isLeased)).toEqual([false, false, false]);
    for (const { reuse } of frames) reuse();
    expect(frames.map(({ frame }) => frame.text())).toEqual(['text', 'data', 'never']);
    lease.end();
  });
});
