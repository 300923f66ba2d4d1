import { describe, expect, it } from '@jest/globals';
import { right } from 'fp-ts/lib/Either.js';
import { Frame } from '../../../src/protocol/frame.js';
import { Conflated } from '../../../src/operators/items/conflated.js';
import { Decoded } from '../../../src/operators/items/decoded.js';
import { withOwnBytes } from '../../../src/operators/own-bytes.js';
import { ReplayedFrame } from '../../../src/operators/items/replayed.js';
import { ReceivedFrame } from '../../../src/frames/received-frame.js';
import { bufferSizes, chunk } from './views.js';

describe('withOwnBytes', () => {
  it('copies a frame into a buffer of exactly its size', () => {
    const frames = chunk(65_536, [100, 300], [500, 500]);
    const [copy] = frames.map(({ data }) => Buffer.from(data));
    for (const frame of frames) expect(withOwnBytes(frame)).toBe(frame);
    expect(bufferSizes(frames)).toEqual([200, 0]);
    expect(frames.map(({ data }) => data)).toEqual([copy, Buffer.alloc(0)]);
  });

  it('copies bytes from a pool, such as those of a text', () => {
    const frame = new Frame('market', Buffer.from('text'), false, 1, 1);
    expect(bufferSizes([withOwnBytes(frame)])).toEqual([4]);
    expect(frame.text()).toBe('text');
  });

  it('changes the frame that a value was created from, and returns the same value', () => {
    const frames = chunk(1_000, [0, 10], [10, 20], [20, 30]) as [Frame, Frame, Frame];
    const values = [new Decoded(1, frames[0]), right(new Decoded(2, frames[1])), new Conflated('key', frames[2], 1)];
    for (const value of values) expect(withOwnBytes<unknown>(value)).toBe(value);
    expect(bufferSizes(frames)).toEqual([10, 10, 10]);
  });

  it('changes no other field of a frame', () => {
    const read = Buffer.alloc(1_000, 'ä');
    const replayed = new ReplayedFrame('raw', read.subarray(0, 2), false, 3, 4, 5);
    const ascii = new ReceivedFrame('raw', Buffer.alloc(10_000, 'a'), 0, 5_000, false, true, 3, 4, false);
    expect(ascii.data.buffer.byteLength).toBe(10_000);
    expect(withOwnBytes(replayed)).toMatchObject({
      feed: 'raw',
      isBinary: false,
      receivedAt: 3,
      connection: 4,
      offset: 5,
    });
    expect(withOwnBytes(ascii).text()).toBe('a'.repeat(5_000));
    expect([replayed.text(), ...bufferSizes([replayed, ascii])]).toEqual(['ä', 2, 5_000]);
  });

  it.each([
    [749, 749],
    [750, 1_000],
  ])('keeps a buffer of 1,000 bytes if the frame uses at least 3/4 of it: %d bytes', (bytes, bufferBytes) => {
    const [frame] = chunk(1_000, [100, 100 + bytes]) as [Frame];
    expect(withOwnBytes(frame).data.buffer.byteLength).toBe(bufferBytes);
  });

  it('copies a frame once for all holders', () => {
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    const { data } = withOwnBytes(frame);
    expect(withOwnBytes(frame).data).toBe(data);
  });

  it('does not copy a frozen frame', () => {
    const [frozen] = chunk(1_000, [0, 10]) as [Frame];
    const { data } = frozen;
    expect(withOwnBytes(Object.freeze(frozen)).data).toBe(data);
  });

  it('returns another byte array, and changes none', () => {
    const [{ data }] = chunk(1_000, [7, 10]) as [Frame];
    const own = withOwnBytes(data);
    expect([own, own.buffer.byteLength, data.buffer.byteLength]).toEqual([Buffer.from([7, 8, 9]), 3, 1_000]);
  });

  it('copies a Buffer to a Buffer, and a plain byte array to a plain one', () => {
    const plain = new Uint8Array(1_000).fill(7).subarray(3, 13);
    const shared = new Uint8Array(new SharedArrayBuffer(1_000)).fill(7).subarray(3, 13);
    const [{ data }] = chunk(1_000, [0, 10]) as [Frame];
    expect([data, plain, shared].map((view) => Object.getPrototypeOf(withOwnBytes(view)) as unknown)).toEqual([
      Buffer.prototype,
      Uint8Array.prototype,
      Uint8Array.prototype,
    ]);
    expect([...withOwnBytes(plain), ...withOwnBytes(shared)]).toEqual(Array(20).fill(7));
  });

  it.each(['text', undefined, null, 5, { type: 'gap' }])('returns %p unchanged', (value) => {
    expect(withOwnBytes(value)).toBe(value);
  });
});
