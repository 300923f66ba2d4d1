import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type FrameFields, relayedFrame } from '../../src/browser/relayed-frame.js';
import { frameLine } from '../../src/operators/node/recording-line.js';
import { type AnyFrame, Frame } from '../../src/protocol/frame.js';
import { essence } from '../relay/support.js';

const overTheWire = (frame: Frame): AnyFrame => relayedFrame(JSON.parse(frameLine(frame)) as FrameFields);

const payloads: readonly (readonly [string, Buffer])[] = [
  ['nothing', Buffer.alloc(0)],
  ['a text', Buffer.from('{"n":1}')],
  ['text of other planes', Buffer.from('ü€😀\u2028\u2029\u0085\u0000\r\n\t"\\')],
  ['a byte order mark', Buffer.from('\ufeffa')],
  ['two of them', Buffer.from('\ufeff\ufeff')],
  ['every byte value', Buffer.from(Array.from({ length: 256 }, (_, n) => n))],
  ['half a character', Buffer.of(0xe2, 0x82)],
  ['a surrogate', Buffer.of(0xed, 0xa0, 0x80)],
  ['1 MB of text', Buffer.alloc(1_000_000, 'x\n')],
  ['1 MB of bytes', Buffer.alloc(1_000_000, Buffer.of(0xff, 0, 10, 13))],
];

describe('relayedFrame', () => {
  it.each(payloads)('holds %s as it was, as text and as binary', (_what, data) => {
    for (const isBinary of [false, true]) {
      const frame = new Frame('raw', data, isBinary, 123.5, 4);
      const relayed = overTheWire(frame);
      expect(essence(relayed)).toEqual(essence(frame));
      expect(relayed.text()).toBe(frame.text());
    }
  });

  it('holds any bytes as they were', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.boolean(), (data, isBinary) => {
        const frame = new Frame('market', Buffer.from(data), isBinary, 1, 1);
        expect(essence(overTheWire(frame))).toEqual(essence(frame));
        expect(overTheWire(frame).text()).toBe(frame.text());
      }),
    );
  });

  it('is a frame, and no Buffer, with bytes of its own', () => {
    const frame = overTheWire(new Frame('market', Buffer.from('{"a":[1]}'), false, 5, 1));
    expect(frame).toBeInstanceOf(Frame);
    expect(frame.type).toBe('frame');
    expect(frame.json()).toEqual({ a: [1] });
    expect(Object.getPrototypeOf(frame.data)).toBe(Uint8Array.prototype);
    const binary = overTheWire(new Frame('market', Buffer.of(1, 2, 3), true, 5, 1));
    expect(Object.getPrototypeOf(binary.data)).toBe(Uint8Array.prototype);
    expect(binary.data.buffer.byteLength).toBe(3);
    expect(() => overTheWire(new Frame('market', Buffer.from('no'), false, 5, 1)).json()).toThrow(SyntaxError);
  });

  it('goes into a recording, and over another relay, as it came', () => {
    for (const [, data] of payloads)
      for (const isBinary of [false, true]) {
        const frame = new Frame('raw', data, isBinary, 5, 4);
        expect(frameLine(overTheWire(frame))).toBe(frameLine(frame));
      }
  });
});
