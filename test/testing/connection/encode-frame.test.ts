import { describe, expect, it } from '@jest/globals';
import { encodeFrame } from '../../../src/testing/connection/encode-frame.js';

const bytes = (...values: number[]): Buffer => Buffer.from(values);

describe('a frame of a server (RFC 6455 5.2)', () => {
  it.each<[number, Buffer]>([
    [0, bytes(0x82, 0)],
    [1, bytes(0x82, 1)],
    [125, bytes(0x82, 125)],
    [126, bytes(0x82, 126, 0, 126)],
    [65_535, bytes(0x82, 126, 0xff, 0xff)],
    [65_536, bytes(0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0)],
  ])('of %d bytes has the header %j', (length, header) => {
    const payload = Buffer.alloc(length, 7);
    expect(encodeFrame(payload).equals(Buffer.concat([header, payload]))).toBe(true);
  });

  it('is text for a string, in UTF-8', () => {
    expect(encodeFrame('aé€')).toEqual(bytes(0x81, 6, 0x61, 0xc3, 0xa9, 0xe2, 0x82, 0xac));
  });

  it('is binary for a part of a larger array', () => {
    expect(encodeFrame(new Uint8Array([1, 2, 3, 4]).subarray(1, 3))).toEqual(bytes(0x82, 2, 2, 3));
  });

  it('contains a copy: the payload may change later', () => {
    const payload = Buffer.from('a');
    const frame = encodeFrame(payload);
    payload.write('b');
    expect(frame[2]).toBe(0x61);
  });
});
