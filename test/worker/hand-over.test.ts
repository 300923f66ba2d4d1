import { describe, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { Frame } from '../../src/protocol/frame.js';
import { createHandOver } from '../../src/worker/hand-over.js';
import type { Item } from '../../src/worker/messages.js';
import { countHandled, createProgress } from '../../src/worker/progress.js';

const frame = (bytes = 100): Frame => new Frame('market', Buffer.from(new ArrayBuffer(bytes)), false, 1, 1);
const failed = { type: 'error', error: { kind: 'stored', id: 1, message: undefined } } as const;

const watermarksOf = (batches: readonly (readonly Item[])[]) =>
  batches.map((items) => {
    const last = items.at(-1);
    return last?.type === 'event' && last.event.type === 'watermark' ? last.event.at : undefined;
  });

const start = (capacityBytes = 2 ** 28) => {
  const progress = createProgress();
  const batches: (readonly Item[])[] = [];
  const handOver = createHandOver(
    (items, buffers) => {
      // The same objects. jest would compare them byte by byte.
      const blocks = items.flatMap((item) => (item.type === 'frames' ? [item.bytes] : []));
      expect(buffers).toHaveLength(blocks.length);
      expect(blocks.every((block, n) => block === buffers[n])).toBe(true);
      batches.push(items);
    },
    progress,
    capacityBytes,
  );
  const counts = () =>
    batches.map((items) => items.reduce((sum, item) => sum + (item.type === 'frames' ? item.count : 0), 0));
  return {
    progress,
    batches,
    handOver,
    counts,
    put: (count: number, bytes?: number) => Array.from({ length: count }, () => handOver.addFrame(frame(bytes))),
  };
};

describe('the hand-over', () => {
  it('sends all frames of a turn at its end, while the main thread keeps up', async () => {
    const { put, counts, handOver, batches, progress } = start();
    put(3);
    expect(counts()).toEqual([]);
    await turn();
    expect(counts()).toEqual([3]);
    expect(countHandled(progress)).toBe(false);
    put(1);
    handOver.addEvent(failed);
    await turn();
    expect(counts()).toEqual([3, 1]);
    expect(batches[1]?.at(-2)).toBe(failed);
    expect(watermarksOf(batches)).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it('sends two batches ahead, and the rest together after one was handled', async () => {
    const { put, counts, handOver, progress } = start();
    for (const count of [1, 2, 3, 4]) {
      put(count);
      await turn();
    }
    expect(counts()).toEqual([1, 2]);
    expect(countHandled(progress)).toBe(true);
    handOver.resume();
    expect(counts()).toEqual([1, 2, 7]);
    expect(countHandled(progress)).toBe(false);
    put(1);
    await turn();
    expect(counts()).toEqual([1, 2, 7, 1]);
  });

  it('sends blocks before the end of the turn, in batches of a limited size', () => {
    const { put, batches } = start();
    put(90, 100_000);
    expect(batches).toHaveLength(2);
    const bytes = batches.flat().map((item) => (item.type === 'frames' ? item.bytes.byteLength : 0));
    expect(Math.max(...bytes)).toBeLessThan(201_000);
  });

  it('sends with each batch the time up to which all frames are sent', async () => {
    const { handOver, batches, progress } = start();
    const receivedAt = Date.now() - 1_000;
    const read = (bytes: number) => new Frame('market', Buffer.from(new ArrayBuffer(bytes)), false, receivedAt, 1);
    // A block is sent during a read: more frames of that read follow, with the same time.
    for (let n = 0; n < 6; n += 1) handOver.addFrame(read(20_000));
    expect(watermarksOf(batches)).toEqual([receivedAt]);
    const before = Date.now();
    await turn();
    expect(watermarksOf(batches)[1]).toBeGreaterThanOrEqual(before);
    // Two batches are not handled. The watermark is not later than the frames that wait, whatever the clock shows.
    for (let n = 0; n < 200; n += 1) handOver.addFrame(read(20_000));
    await turn();
    expect(batches).toHaveLength(2);
    countHandled(progress);
    handOver.resume();
    expect(watermarksOf(batches).slice(2)).toEqual([receivedAt]);
    countHandled(progress);
    handOver.resume();
    expect(watermarksOf(batches)[3]).toBeGreaterThanOrEqual(before);
  });

  it('sends a watermark on request, unless frames wait or a batch is not handled', async () => {
    const { handOver, batches, put } = start();
    const before = Date.now();
    handOver.sendWatermark();
    expect(watermarksOf(batches)[0]).toBeGreaterThanOrEqual(before);
    expect(batches[0]).toHaveLength(1);
    put(1);
    handOver.sendWatermark();
    expect(batches).toHaveLength(1);
    await turn();
    handOver.sendWatermark();
    expect(batches).toHaveLength(2);
  });

  it('has its whole capacity again after all batches were handled', async () => {
    const { put, counts, handOver, progress, batches } = start(640_000);
    for (let round = 0; round < 10; round += 1) {
      put(10, 50_000);
      await turn();
      while (batches.length > Atomics.load(progress, 0)) countHandled(progress);
      handOver.resume();
      while (batches.length > Atomics.load(progress, 0)) countHandled(progress);
    }
    expect(counts().reduce((a, b) => a + b)).toBe(100);
    expect(batches.flat().filter(({ type }) => type === 'missed')).toEqual([]);
  });

  it('counts batches that are not handled against the capacity', async () => {
    const { put, counts, handOver, progress, batches } = start(640_000);
    put(30, 50_000);
    await turn();
    const [ahead] = [counts().reduce((a, b) => a + b)];
    countHandled(progress);
    countHandled(progress);
    handOver.resume();
    const missed = batches.flat().find(({ type }) => type === 'missed');
    expect(missed).toMatchObject({ type: 'missed' });
    const all = counts().reduce((a, b) => a + b);
    expect(all - ahead).toBeGreaterThan(0);
    expect(all + (missed as { readonly frames: number }).frames).toBe(30);
  });
});
