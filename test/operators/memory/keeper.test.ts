import { describe, expect, it } from '@jest/globals';
import type { Frame } from '../../../src/protocol/frame.js';
import { Decoded } from '../../../src/operators/items/decoded.js';
import { keeper } from '../../../src/operators/memory/keeper.js';
import { bufferSizes, chunk, endOfTurn } from './views.js';

describe('keeper', () => {
  it('copies each frame into a separate buffer after the turn, for any number of frames per buffer', async () => {
    const keep = keeper();
    const frames = chunk(1_000, [0, 375], [500, 875], [5, 5]);
    const copies = frames.map(({ data }) => Buffer.from(data));
    for (const frame of frames) expect(keep(frame)).toBe(frame);
    expect(bufferSizes(frames)).toEqual([1_000, 1_000, 1_000]);
    await endOfTurn();
    expect(bufferSizes(frames)).toEqual([375, 375, 0]);
    expect(frames.map(({ data }) => data)).toEqual(copies);
  });

  it('does so in each turn', async () => {
    const keep = keeper();
    for (let turn = 0; turn < 3; turn += 1) {
      const frames = chunk(65_536, [10, 110]);
      keep(frames[0]);
      await endOfTurn();
      expect(bufferSizes(frames)).toEqual([100]);
    }
  });

  it('does not copy a frame that another holder has copied', async () => {
    const frames = chunk(65_536, [0, 100], [100, 200]);
    const [first, second] = [keeper(), keeper()];
    for (const frame of frames) first(frame);
    const copied = endOfTurn().then(() => frames.map(({ data }) => data));
    for (const frame of frames) second(frame);
    const datas = await copied;
    await endOfTurn();
    frames.forEach(({ data }, n) => expect(data).toBe(datas[n]));
    expect(bufferSizes(frames)).toEqual([100, 100]);
  });

  it('copies the frame of a decoded value, and no other value', async () => {
    const keep = keeper();
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    const decoded = new Decoded(1, frame);
    for (const value of [decoded, 'text', undefined, { type: 'gap' }]) expect(keep(value)).toBe(value);
    await endOfTurn();
    expect(decoded.frame.data.buffer.byteLength).toBe(10);
  });

  it('copies a byte array at once, if it is a small part of its buffer', () => {
    const keep = keeper();
    const [{ data: small }, { data: large }] = chunk(1_000, [0, 10], [10, 800]) as [Frame, Frame];
    expect(keep(small)).toEqual(small);
    expect(keep(small).buffer.byteLength).toBe(10);
    expect(keep(large)).toBe(large);
  });
});
