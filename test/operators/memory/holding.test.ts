import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Frame } from '../../../src/protocol/frame.js';
import { Conflated } from '../../../src/operators/items/conflated.js';
import { Decoded } from '../../../src/operators/items/decoded.js';
import { type Held, Holding } from '../../../src/operators/memory/holding.js';
import { bufferSizes, chunk, endOfTurn, fullChunk } from './views.js';
import { cases } from '../../support/cases.js';

const holdAll = (holding: Holding<Frame>, frames: readonly Frame[]): Held<Frame>[] =>
  frames.map((frame) => holding.hold(frame));

describe('Holding', () => {
  it('copies frames that are held at the end of the turn into buffers of exactly their size', async () => {
    const holding = new Holding<Frame>();
    const frames = fullChunk(64, 1_000);
    const copies = frames.map(({ data }) => Buffer.from(data));
    const [first] = holdAll(holding, frames);
    expect(new Set(bufferSizes(frames))).toEqual(new Set([64_000]));
    await endOfTurn();
    expect(new Set(bufferSizes(frames))).toEqual(new Set([1_000]));
    expect(frames.map(({ data }) => data)).toEqual(copies);
    expect(holding.release(first!)).toBe(frames[0]);
    expect(holding.slack).toBe(0);
  });

  it('does not copy a frame that is released within the turn, in promises or by `nextTick`', async () => {
    const holding = new Holding<Frame>();
    const frames = fullChunk(64, 1_000);
    const held = holdAll(holding, frames);
    holding.release(held[0]!);
    for (const each of held.slice(1, 40)) {
      await Promise.resolve();
      holding.release(each);
    }
    for (const each of held.slice(40, -1)) {
      await new Promise<void>((resolve) => process.nextTick(resolve));
      holding.release(each);
    }
    await endOfTurn();
    expect(bufferSizes(frames)).toEqual([...Array.from({ length: 63 }, () => 64_000), 1_000]);
    expect(holding.slack).toBe(0);
  });

  it('does the same without `setImmediate`, as in a browser', async () => {
    const holding = await withoutSetImmediate();
    const held = holding.hold(new Uint8Array(1_000).subarray(0, 10));
    await Promise.resolve();
    expect(held.value.buffer.byteLength).toBe(10);
  });

  it('copies before the end of the turn when more than 4 MiB of buffers were read in it', () => {
    const holding = new Holding<Frame>();
    const reads = Array.from({ length: 65 }, () => chunk(65_536, [0, 10])[0] as Frame);
    holdAll(holding, reads.slice(0, 64));
    expect(new Set(bufferSizes(reads))).toEqual(new Set([65_536]));
    holdAll(holding, reads.slice(64));
    expect(bufferSizes(reads)).toEqual([...Array.from({ length: 64 }, () => 10), 65_536]);
    const larger = chunk(5_000_000, [0, 10], [10, 20]);
    holdAll(holding, larger);
    expect(bufferSizes([...reads.slice(64), ...larger])).toEqual([10, 5_000_000, 5_000_000]);
  });

  it('does not copy a frame that uses at least 3/4 of its buffer, and counts the rest of the buffer', async () => {
    const holding = new Holding<Frame>();
    const frames = [...chunk(1_000, [0, 800]), ...chunk(1_000, [0, 750]), ...chunk(1_000, [0, 749])];
    const held = holdAll(holding, frames);
    await endOfTurn();
    expect([bufferSizes(frames), holding.slack]).toEqual([[1_000, 1_000, 749], 450]);
    expect(held.map((each) => (holding.release(each), holding.slack))).toEqual([250, 0, 0]);
  });

  it('does not copy a frozen frame, and counts all of its buffer', async () => {
    const holding = new Holding<Frame>();
    const frames = chunk(1_000, [0, 10], [10, 20], [20, 30]) as [Frame, Frame, Frame];
    const held = holdAll(holding, frames);
    Object.freeze(frames[0]);
    await endOfTurn();
    expect([bufferSizes(frames), holding.slack]).toEqual([[1_000, 10, 10], 990]);
    Object.freeze(frames[1]);
    for (const each of held) holding.release(each);
    expect(holding.slack).toBe(0);
  });

  it('copies a byte array only for itself', async () => {
    const holding = new Holding<Uint8Array>();
    const [{ data }] = chunk(1_000, [7, 10]) as [Frame];
    const held = holding.hold(data);
    await endOfTurn();
    const own = holding.release(held);
    expect([own, own.buffer.byteLength, data.buffer.byteLength]).toEqual([Buffer.from([7, 8, 9]), 3, 1_000]);
  });

  it('holds any other value unchanged', async () => {
    const holding = new Holding<unknown>();
    const values = ['text', undefined, { type: 'gap' }];
    const held = values.map((value) => holding.hold(value));
    await endOfTurn();
    expect(held.map((each) => holding.release(each))).toEqual(values);
    expect(holding.slack).toBe(0);
  });

  it('keeps no released value alive during a turn that does not end', async () => {
    const holding = new Holding<object>();
    const [frame] = chunk(1_000, [0, 10]) as [Frame];
    const holdAndRelease = (): WeakRef<object> => {
      const value = new Decoded(1, frame);
      holding.release(holding.hold(value));
      return new WeakRef(value);
    };
    const first = holdAndRelease();
    for (let n = 0; n < 2_000; n += 1) holdAndRelease();
    // A WeakRef keeps its target alive in the job that created it. The next tick comes before the end of the turn.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    collectGarbage();
    expect(first.deref()).toBeUndefined();
  });

  it('copies nothing after all values were released', async () => {
    const holding = new Holding<Frame>();
    const frames = chunk(1_000, [0, 10]);
    holdAll(holding, [...frames, ...chunk(1_000, [0, 800])]);
    holding.clear();
    await endOfTurn();
    expect([bufferSizes(frames), holding.slack]).toEqual([[1_000], 0]);
    holdAll(holding, frames);
    await endOfTurn();
    expect([bufferSizes(frames), holding.slack]).toEqual([[10], 0]);
  });

  it('has the right bytes and slack when several instances hold and release the same frames', async () => {
    const size = fc.constantFrom(0, 1, 60, 250, 750, 999, 1_000);
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ type: fc.constant('read' as const), ends: fc.uniqueArray(size, { minLength: 2 }) }),
      },
      { weight: 8, arbitrary: fc.record({ type: fc.constant('hold' as const), by: fc.nat(2), frame: fc.nat() }) },
      { weight: 4, arbitrary: fc.record({ type: fc.constant('release' as const), by: fc.nat(2), frame: fc.nat() }) },
      fc.record({ type: fc.constant('settle' as const), by: fc.nat(2) }),
      fc.record({ type: fc.constant('clear' as const), by: fc.nat(2) }),
      fc.record({ type: fc.constant('freeze' as const), frame: fc.nat() }),
      { weight: 2, arbitrary: fc.record({ type: fc.constant('turn' as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const model = new Model();
        for (const each of steps) await model.run(each);
        await model.run({ type: 'turn' });
      }),
      { numRuns: cases(300) },
    );
  });
});

type Step =
  | { type: 'read'; ends: readonly number[] }
  | { type: 'hold' | 'release'; by: number; frame: number }
  | { type: 'settle' | 'clear'; by: number }
  | { type: 'freeze'; frame: number }
  | { type: 'turn' };

/** Three instances that hold the same frames, with the expected values. Every third frame is held as a value created from it. */
class Model {
  readonly frames: Frame[] = [];
  readonly copies = new Map<Frame, Buffer>();
  readonly holders = Array.from({ length: 3 }, () => ({ holding: new Holding<unknown>(), held: [] as OneHeld[] }));

  async run(step: Step): Promise<void> {
    switch (step.type) {
      case 'read': {
        const ends = [...step.ends].sort((a, b) => a - b);
        const read = chunk(1_000, ...ends.slice(1).map((end, n) => [ends[n] as number, end] as const));
        for (const frame of read) this.copies.set(frame, Buffer.from(frame.data));
        this.frames.push(...read);
        break;
      }
      case 'hold': {
        const index = step.frame % (this.frames.length || 1);
        const frame = this.frames[index];
        const value = index % 3 === 0 ? new Conflated(1, new Decoded(2, frame!), 3) : frame;
        const { holding, held } = this.holders[step.by]!;
        if (frame !== undefined) held.push({ frame, value, held: holding.hold(value) });
        break;
      }
      case 'release': {
        const { holding, held } = this.holders[step.by]!;
        const [one] = held.splice(step.frame % (held.length || 1), 1);
        if (one !== undefined) expect(holding.release(one.held)).toBe(one.value);
        break;
      }
      case 'settle':
        this.holders[step.by]!.holding.settle();
        this.checkCounts(step.by);
        break;
      case 'clear':
        this.holders[step.by]!.holding.clear();
        this.holders[step.by]!.held.length = 0;
        this.checkCounts(step.by);
        break;
      case 'freeze':
        if (this.frames.length > 0) Object.freeze(this.frames[step.frame % this.frames.length]);
        break;
      case 'turn':
        await endOfTurn();
        this.holders.forEach((_, n) => this.checkCounts(n));
    }
    for (const [frame, copy] of this.copies) expect(frame.data.equals(copy)).toBe(true);
    for (const { holding } of this.holders) expect(holding.slack).toBeGreaterThanOrEqual(0);
  }

  private checkCounts(by: number): void {
    const { holding, held } = this.holders[by]!;
    const slacks = held.map(({ frame: { data } }) => data.buffer.byteLength - data.length);
    expect(holding.slack).toBe(slacks.reduce((sum, each) => sum + each, 0));
    const movable = [...new Set(held.map(({ frame }) => frame).filter((frame) => !Object.isFrozen(frame)))];
    for (const { data } of movable) expect(data.buffer.byteLength * 3).toBeLessThanOrEqual(data.length * 4);
    const buffers = movable.filter(({ data }) => data.length > 0).map(({ data }) => data.buffer);
    expect(new Set(buffers).size).toBe(buffers.length);
  }
}

interface OneHeld {
  readonly frame: Frame;
  readonly value: unknown;
  readonly held: Held<unknown>;
}

const withoutSetImmediate = async (): Promise<Holding<Uint8Array>> => {
  const { setImmediate: own } = globalThis;
  Reflect.deleteProperty(globalThis, 'setImmediate');
  try {
    jest.resetModules();
    const browser = await import('../../../src/operators/memory/holding.js');
    return new browser.Holding<Uint8Array>();
  } finally {
    globalThis.setImmediate = own;
  }
};

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
