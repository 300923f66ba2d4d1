import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Frame } from '../../../src/protocol/frame.js';
import { type Held, Holding } from '../../../src/operators/stream/holding.js';
import { aliveBytes, bufferSizes, bytesOfAll, chunk, endOfTurn, fullChunk } from './views.js';

const holdAll = (holding: Holding<Frame>, frames: readonly Frame[]): Held<Frame>[] =>
  frames.map((frame) => holding.hold(frame));

describe('Holding', () => {
  it('moves what is a small part of its buffer at the end of the turn', async () => {
    const holding = new Holding<Frame>();
    const frames = chunk(65_536, [0, 100], [200, 300]);
    const [first] = holdAll(holding, frames);
    expect([bufferSizes(frames), holding.slack]).toEqual([[65_536, 65_536], 0]);
    await endOfTurn();
    expect([bufferSizes(frames), holding.slack]).toEqual([[200, 200], 0]);
    expect(holding.release(first!)).toBe(frames[0]);
    expect(holding.slack).toBe(100);
  });

  it('moves it when the next buffer comes', () => {
    const holding = new Holding<Frame>();
    const frames = chunk(65_536, [0, 100]);
    holdAll(holding, [...frames, ...chunk(65_536, [0, 100])]);
    expect(bufferSizes(frames)).toEqual([100]);
  });

  it('looks only at what is still held by then', async () => {
    const holding = new Holding<Frame>();
    const frames = fullChunk(64, 1_000);
    for (const held of holdAll(holding, frames).slice(0, -1)) holding.release(held);
    await endOfTurn();
    expect(bufferSizes(frames)).toEqual([...Array.from({ length: 63 }, () => 64_000), 1_000]);
    expect(holding.slack).toBe(0);
  });

  it('leaves what is most of its buffer, and counts the rest of it', async () => {
    const holding = new Holding<Frame>();
    const alone = chunk(1_000, [0, 800]);
    const together = chunk(1_000, [0, 400], [500, 850]);
    const held = holdAll(holding, [...alone, ...together]);
    expect(holding.slack).toBe(200);
    await endOfTurn();
    expect(bufferSizes([...alone, ...together])).toEqual([1_000, 1_000, 1_000]);
    expect(holding.slack).toBe(450);
    for (const each of held) holding.release(each);
    expect(holding.slack).toBe(0);
  });

  it('counts a buffer as long as one of its frames is there', async () => {
    const holding = new Holding<Frame>();
    const held = holdAll(holding, fullChunk(4, 1_000));
    await endOfTurn();
    const slacks = held.map((each) => {
      holding.release(each);
      return holding.slack;
    });
    expect(slacks).toEqual([1_000, 2_000, 3_000, 0]);
  });

  it('moves what is left of a buffer when too much of it has gone, and not before it is asked to', async () => {
    const holding = new Holding<Frame>();
    const frames = fullChunk(8, 1_000);
    const held = holdAll(holding, frames);
    await endOfTurn();
    holding.release(held[2]!);
    holding.release(held[4]!);
    holding.tidy();
    expect(bufferSizes(frames)).toEqual(Array(8).fill(8_000));
    holding.release(held[0]!);
    expect([bufferSizes(frames)[1], holding.slack]).toEqual([8_000, 3_000]);
    holding.tidy();
    expect(bufferSizes(frames)).toEqual([8_000, 5_000, 8_000, 5_000, 8_000, 5_000, 5_000, 5_000]);
    expect(holding.slack).toBe(0);
  });

  it('leaves what is left of a buffer while it is little beside the rest', async () => {
    const holding = new Holding<Frame>();
    holdAll(holding, fullChunk(20, 1_000));
    const frames = fullChunk(4, 1_000);
    const held = holdAll(holding, frames);
    await endOfTurn();
    for (const each of held.slice(1)) holding.release(each);
    holding.tidy();
    expect([bufferSizes(frames)[0], holding.slack]).toEqual([4_000, 3_000]);
  });

  it('moves byte arrays, too', async () => {
    const holding = new Holding<Uint8Array>();
    const [{ data }] = chunk(1_000, [7, 10]) as [Frame];
    const held = holding.hold(data);
    await endOfTurn();
    const moved = holding.release(held);
    expect(moved).toEqual(Buffer.from([7, 8, 9]));
    expect(moved.buffer.byteLength).toBe(3);
  });

  it('takes an empty frame out of its buffer', async () => {
    const holding = new Holding<Frame>();
    const empty = chunk(1_000, [5, 5]);
    const [held] = holdAll(holding, empty);
    await endOfTurn();
    expect([bufferSizes(empty), holding.slack]).toEqual([[0], 0]);
    holding.release(held!);
    expect(holding.slack).toBe(0);
  });

  it('holds anything else as it is', () => {
    const holding = new Holding<unknown>();
    const values = ['text', undefined, { type: 'gap' }];
    expect(values.map((value) => holding.release(holding.hold(value)))).toEqual(values);
    expect(holding.slack).toBe(0);
  });

  it('forgets what was let go while a buffer is read that does not end', async () => {
    const holding = new Holding<Frame>();
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    let last = holding.hold(frame);
    const released = new WeakRef(last);
    for (let n = 0; n < 10_000; n += 1) {
      holding.release(last);
      last = holding.hold(frame);
    }
    expect(last.group!.held.length).toBeLessThan(1_100);
    expect(released.deref()?.value).toBeUndefined();
    await endOfTurn();
    expect(bufferSizes([frame])).toEqual([10]);
  });

  it('lets everything go', async () => {
    const holding = new Holding<Frame>();
    const frames = chunk(1_000, [0, 10]);
    holdAll(holding, [...frames, ...chunk(1_000, [0, 800])]);
    holding.clear();
    await endOfTurn();
    expect([bufferSizes(frames), holding.slack]).toEqual([[1_000], 0]);
  });

  it('has forgotten what it let go of when there is something to be tidied up', async () => {
    const holding = new Holding<Frame>();
    const before = fullChunk(4, 1_000);
    for (const held of holdAll(holding, before).slice(2)) {
      await endOfTurn();
      holding.release(held);
    }
    expect(holding.slack).toBe(2_000);
    holding.clear();
    const after = fullChunk(4, 1_000);
    const held = holdAll(holding, after);
    await endOfTurn();
    for (const each of held.slice(2)) holding.release(each);
    holding.tidy();
    expect([bufferSizes(before)[0], bufferSizes(after)[0], holding.slack]).toEqual([4_000, 2_000, 0]);
  });

  it('tidies up what is sparse, and leaves what has lost but little', async () => {
    const holding = new Holding<Frame>();
    const little = fullChunk(10, 100);
    const much = fullChunk(4, 1_000);
    const held = [...holdAll(holding, little), ...holdAll(holding, much)];
    await endOfTurn();
    for (const n of [0, 10, 11, 12]) holding.release(held[n]!);
    holding.tidy();
    expect([bufferSizes(little)[1], bufferSizes(much)[3]]).toEqual([1_000, 1_000]);
    expect(holding.slack).toBe(100);
  });

  it('waits for the end of the turn, however many frames come out of one buffer', async () => {
    const holding = new Holding<Frame>();
    const views = Array.from({ length: 3_000 }, (_, n) => [n, n + 1] as const);
    const frames = chunk(65_536, ...views);
    holdAll(holding, frames);
    expect(new Set(bufferSizes(frames))).toEqual(new Set([65_536]));
    await endOfTurn();
    expect(new Set(bufferSizes(frames))).toEqual(new Set([3_000]));
  });

  it('changes no byte, counts what is alive, and keeps at most one and a third times of what is held, whatever is let go', async () => {
    const step = fc.record({
      ends: fc.uniqueArray(fc.integer({ min: 1, max: 256 }), { maxLength: 8 }),
      isKept: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
      released: fc.array(fc.nat(1_000), { maxLength: 12 }),
      isTurn: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const holding = new Holding<Frame>();
        const held: Held<Frame>[] = [];
        const copies = new Map<Frame, Buffer>();
        for (const { ends, isKept, released, isTurn } of steps) {
          const sorted = [0, ...ends.sort((a, b) => a - b)];
          const frames = chunk(256, ...sorted.slice(1).map((end, n) => [sorted[n] as number, end] as const));
          for (const frame of frames.filter((_, n) => isKept[n])) {
            copies.set(frame, Buffer.from(frame.data));
            held.push(holding.hold(frame));
          }
          if (isTurn) await endOfTurn();
          for (const each of released) {
            const [one] = held.splice(each % (held.length || 1), 1);
            if (one === undefined) continue;
            const frame = holding.release(one);
            expect(frame.data).toEqual(copies.get(frame));
          }
          const there = held.map(({ value }) => value);
          if (isTurn) {
            expect(bytesOfAll(there) + holding.slack).toBe(aliveBytes(there));
            holding.tidy();
            expect(bytesOfAll(there) + holding.slack).toBe(aliveBytes(there));
            expect(aliveBytes(there)).toBeLessThanOrEqual((4 / 3) * bytesOfAll(there));
          }
        }
      }),
    );
  });
});
