import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Frame } from '../../../src/protocol/frame.js';
import { Decoded } from '../../../src/operators/stream/decoded.js';
import { keeper } from '../../../src/operators/stream/keeper.js';
import { aliveBytes, bufferSizes, bytesOfAll, chunk, endOfTurn } from './views.js';

describe('keeper', () => {
  it('moves the frames that are a small part of their buffer, when the next buffer comes', () => {
    const keep = keeper();
    const sparse = chunk(65_536, [10, 110], [40_000, 40_050]);
    const copies = sparse.map(({ data }) => Buffer.from(data));
    for (const frame of sparse) expect(keep(frame)).toBe(frame);
    expect(bufferSizes(sparse)).toEqual([65_536, 65_536]);
    keep(chunk(100, [0, 10])[0]);
    expect(bufferSizes(sparse)).toEqual([150, 150]);
    expect(sparse.map(({ data }) => data)).toEqual(copies);
  });

  it('moves them at the end of the turn, when no other buffer comes', async () => {
    const keep = keeper();
    const first = chunk(65_536, [10, 110]);
    keep(first[0]);
    await endOfTurn();
    expect(bufferSizes(first)).toEqual([100]);
    const second = chunk(65_536, [10, 120]);
    keep(second[0]);
    await endOfTurn();
    expect(bufferSizes(second)).toEqual([110]);
  });

  it('leaves frames where they are that are at least three quarters of their buffer together', async () => {
    const keep = keeper();
    const dense = chunk(1_000, [0, 375], [500, 875]);
    const sparse = chunk(1_001, [0, 375], [500, 875]);
    for (const frame of [...dense, ...sparse]) keep(frame);
    await endOfTurn();
    expect(bufferSizes(dense)).toEqual([1_000, 1_000]);
    expect(bufferSizes(sparse)).toEqual([750, 750]);
  });

  it('leaves a frame where it is that comes once more', async () => {
    const keep = keeper();
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    for (let n = 0; n < 100; n += 1) keep(frame);
    await endOfTurn();
    expect(bufferSizes([frame])).toEqual([1_000]);
  });

  it('takes an empty frame out of its buffer', async () => {
    const [frame] = chunk(1_000, [5, 5]) as [Frame];
    keeper()(frame);
    await endOfTurn();
    expect(frame.data).toEqual(Buffer.alloc(0));
    expect(bufferSizes([frame])).toEqual([0]);
  });

  it('moves at most 64 KiB into one buffer, however large the buffer was; a frame that is larger for itself', async () => {
    const keep = keeper();
    const views = Array.from({ length: 4_000 }, (_, n) => [n * 2_500, n * 2_500 + 100] as const);
    const frames = chunk(11_000_000, ...views, [10_000_000, 10_200_000]);
    const copy = Buffer.concat(frames.map(({ data }) => data));
    for (const frame of frames) keep(frame);
    await endOfTurn();
    expect(bufferSizes(frames).at(-1)).toBe(200_000);
    expect(Math.max(...bufferSizes(frames.slice(0, -1)))).toBe(65_500);
    expect(aliveBytes(frames)).toBe(bytesOfAll(frames));
    expect(Buffer.concat(frames.map(({ data }) => data)).equals(copy)).toBe(true);
  });

  it('leaves a frame where it is that somebody froze', async () => {
    const keep = keeper();
    const [frozen, other, empty] = chunk(1_000, [0, 10], [10, 20], [5, 5]) as [Frame, Frame, Frame];
    for (const frame of [Object.freeze(frozen), other, Object.freeze(empty)]) keep(frame);
    await endOfTurn();
    expect(bufferSizes([frozen, other, empty])).toEqual([1_000, 20, 1_000]);
    expect(frozen.data[9]).toBe(9);
  });

  it('counts each buffer for itself', async () => {
    const keep = keeper();
    const one = chunk(1_000, [0, 600]);
    const two = chunk(1_000, [0, 600]);
    for (const frame of [...one, ...two]) keep(frame);
    await endOfTurn();
    expect(bufferSizes([...one, ...two])).toEqual([600, 600]);
  });

  it('leaves frames where another one has moved them, unless they are a small part of that', async () => {
    const all = chunk(65_536, ...Array.from({ length: 10 }, (_, n) => [n * 100, n * 100 + 100] as const));
    const [first, alike, few] = [keeper(), keeper(), keeper()];
    for (const frame of all) {
      first(frame);
      alike(frame);
    }
    few(all[0]);
    await endOfTurn();
    expect(bufferSizes(all)).toEqual([100, ...Array.from({ length: 9 }, () => 1_000)]);
    expect(new Set(all.map(({ data }) => data.buffer)).size).toBe(2);
  });

  it('does not move a second time what another one has moved just before', async () => {
    const all = chunk(65_536, ...Array.from({ length: 10 }, (_, n) => [n * 100, n * 100 + 100] as const));
    const [first, second] = [keeper(), keeper()];
    for (const frame of all) first(frame);
    const moved = Promise.resolve().then(() => all.map(({ data }) => data.buffer));
    for (const frame of all) second(frame);
    const buffers = await moved;
    await endOfTurn();
    expect(bufferSizes(all)).toEqual(Array(10).fill(1_000));
    all.forEach(({ data }, n) => expect(data.buffer).toBe(buffers[n]));
  });

  it('moves the frame of a decoded value; leaves everything else alone', async () => {
    const keep = keeper();
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    const decoded = new Decoded(1, frame);
    for (const value of [decoded, 'text', undefined, { type: 'gap' }]) expect(keep(value)).toBe(value);
    await endOfTurn();
    expect(decoded.frame.data.buffer.byteLength).toBe(10);
  });

  it('gives the same bytes elsewhere for a byte array that is a small part of its buffer', () => {
    const keep = keeper();
    const [{ data: small }, { data: large }] = chunk(1_000, [0, 10], [10, 800]) as [Frame, Frame];
    expect(keep(small)).toEqual(small);
    expect(keep(small).buffer.byteLength).toBe(10);
    expect(keep(large)).toBe(large);
  });

  it('leaves a Buffer a Buffer, and a plain byte array one', async () => {
    const keep = keeper();
    const buffers = chunk(1_000, [0, 10], [5, 5]);
    const plain = [new Uint8Array(1_000).fill(7).subarray(3, 13), new Uint8Array(0)].map(
      (data) => new Frame<Uint8Array>('raw', data, false, 1, 1),
    );
    for (const frame of [...buffers, ...plain]) keep(frame);
    await endOfTurn();
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

  it('changes no byte, and keeps at most one and a third times what it holds alive', async () => {
    // Side by side, as frames are.
    const cuts = fc.array(fc.nat(256), { minLength: 2, maxLength: 8 }).map((ends) => ends.sort((a, b) => a - b));
    const views = cuts.map((ends) => ends.slice(1).map((end, n) => [ends[n] as number, end] as const));
    await fc.assert(
      fc.asyncProperty(fc.array(views), async (chunks) => {
        const keep = keeper();
        const frames = chunks.flatMap((each) => chunk(256, ...each).filter((_, n) => n % 2 === 0));
        const copies = frames.map(({ data }) => Buffer.from(data));
        for (const frame of frames) keep(frame);
        await endOfTurn();
        expect(frames.map(({ data }) => data)).toEqual(copies);
        expect(aliveBytes(frames)).toBeLessThanOrEqual((4 / 3) * bytesOfAll(frames));
      }),
    );
  });
});
