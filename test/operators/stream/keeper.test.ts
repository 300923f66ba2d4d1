import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Frame } from '../../../src/protocol/frame.js';
import { Decoded } from '../../../src/operators/stream/decoded.js';
import { keeper } from '../../../src/operators/stream/keeper.js';

/** Frames as a socket gives them: views of one buffer, which is filled with other bytes each time. */
const chunk = (bytes: number, ...views: readonly (readonly [start: number, end: number])[]): Frame[] => {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  for (let n = 0; n < bytes; n += 1) buffer[n] = n % 251;
  return views.map(([start, end]) => new Frame('raw', buffer.subarray(start, end), false, 1, 1));
};

const bufferSizes = (frames: readonly Frame[]): number[] => frames.map(({ data }) => data.buffer.byteLength);

describe('keeper', () => {
  it('moves the frames that are a small part of their buffer, when the next buffer comes', () => {
    const keep = keeper();
    const sparse = chunk(65_536, [10, 110], [40_000, 40_050]);
    const copies = sparse.map(({ data }) => Buffer.from(data));
    for (const frame of sparse) expect(keep(frame)).toBe(frame);
    expect(bufferSizes(sparse)).toEqual([65_536, 65_536]);
    keep(chunk(100, [0, 100])[0]);
    expect(bufferSizes(sparse)).toEqual([150, 150]);
    expect(sparse.map(({ data }) => data)).toEqual(copies);
  });

  it('leaves frames where they are that are at least half of their buffer together', () => {
    const keep = keeper();
    const dense = chunk(1_000, [0, 250], [500, 750]);
    for (const frame of [...dense, ...chunk(10, [0, 1])]) keep(frame);
    expect(bufferSizes(dense)).toEqual([1_000, 1_000]);
  });

  it('leaves a frame where it is that comes once more', () => {
    const keep = keeper();
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    for (let n = 0; n < 60; n += 1) keep(frame);
    keep(chunk(10, [0, 1])[0]);
    expect(bufferSizes([frame])).toEqual([1_000]);
  });

  it('takes an empty frame out of its buffer at once', () => {
    const [frame] = chunk(1_000, [5, 5]) as [Frame];
    keeper()(frame);
    expect(frame.data).toEqual(Buffer.alloc(0));
    expect(bufferSizes([frame])).toEqual([0]);
  });

  it('moves at most 64 KiB at once, and one frame more, however large a buffer is', () => {
    const keep = keeper();
    const views = Array.from({ length: 4_000 }, (_, n) => [n * 2_500, n * 2_500 + 100] as const);
    const frames = chunk(10_000_000, ...views);
    const copy = Buffer.concat(frames.map(({ data }) => data));
    for (const frame of frames) keep(frame);
    const moved = bufferSizes(frames).filter((bytes) => bytes !== 10_000_000);
    expect(moved.length).toBeGreaterThan(3_000);
    expect(Math.max(...moved)).toBeLessThan(64 * 1024 + 100);
    keep(chunk(10, [0, 1])[0]);
    expect(Math.max(...bufferSizes(frames))).toBeLessThan(64 * 1024 + 100);
    expect(Buffer.concat(frames.map(({ data }) => data)).equals(copy)).toBe(true);
  });

  it('leaves a frame where it is that somebody froze', () => {
    const keep = keeper();
    const [frozen, other, empty] = chunk(1_000, [0, 10], [10, 20], [5, 5]) as [Frame, Frame, Frame];
    for (const frame of [Object.freeze(frozen), other, Object.freeze(empty), ...chunk(10, [0, 1])]) keep(frame);
    expect(bufferSizes([frozen, other, empty])).toEqual([1_000, 20, 1_000]);
    expect(frozen.data[9]).toBe(9);
  });

  it('counts each buffer for itself', () => {
    const keep = keeper();
    const one = chunk(1_000, [0, 499]);
    const two = chunk(1_000, [0, 499]);
    for (const frame of [...one, ...two, ...chunk(10, [0, 1])]) keep(frame);
    expect(bufferSizes([...one, ...two])).toEqual([499, 499]);
  });

  it('moves the frame of a decoded value; leaves everything else alone', () => {
    const keep = keeper();
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    const decoded = new Decoded(1, frame);
    for (const value of [decoded, 'text', undefined, { type: 'gap' }]) expect(keep(value)).toBe(value);
    keep(chunk(10, [0, 1])[0]);
    expect(decoded.frame.data.buffer.byteLength).toBe(10);
  });

  it('leaves a Buffer a Buffer, and a plain byte array one', () => {
    const keep = keeper();
    const buffers = chunk(1_000, [0, 10], [5, 5]);
    const plain = [new Uint8Array(1_000).fill(7).subarray(3, 13), new Uint8Array(0)].map(
      (data) => new Frame<Uint8Array>('raw', data, false, 1, 1),
    );
    for (const frame of [...buffers, ...plain, ...chunk(10, [0, 1])]) keep(frame);
    expect(buffers.map(({ data }) => Buffer.isBuffer(data))).toEqual([true, true]);
    expect(buffers[0]!.data.toString('hex')).toBe('00010203040506070809');
    expect(plain.map(({ data }) => Object.getPrototypeOf(data) as unknown)).toEqual([
      Uint8Array.prototype,
      Uint8Array.prototype,
    ]);
    expect(plain.map(({ data }) => [data.buffer.byteLength, [...data]])).toEqual([
      [10, Array.from({ length: 10 }, () => 7)],
      [0, []],
    ]);
  });

  it('changes no byte, and keeps at most twice what it holds and the last buffer alive', () => {
    const view = fc.tuple(fc.nat(255), fc.nat(255)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    fc.assert(
      fc.property(fc.array(fc.array(view, { minLength: 1, maxLength: 5 })), (chunks) => {
        const keep = keeper();
        const frames = chunks.map((views) => chunk(256, ...views));
        const copies = frames.flat().map(({ data }) => Buffer.from(data));
        for (const frame of frames.flat()) keep(frame);
        expect(frames.flat().map(({ data }) => data)).toEqual(copies);
        const settled = frames.slice(0, -1).flat();
        const alive = [...new Set(settled.map(({ data }) => data.buffer))].reduce(
          (sum, { byteLength }) => sum + byteLength,
          0,
        );
        const heldBytes = settled.reduce((sum, { data }) => sum + data.byteLength, 0);
        expect(alive).toBeLessThanOrEqual(2 * heldBytes);
      }),
    );
  });
});
