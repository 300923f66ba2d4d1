/**
 * @lane processes
 * @ci
 */
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchLibrary, benchLibrary, benchModule } from './library.js';

// Programs take long to start on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);

interface Guard {
  readonly atLeast: number;
}

interface Guards {
  readonly MARGIN: number;
  readonly guards: readonly Guard[];
  readonly brokenOf: (
    some: readonly Guard[],
    ratioOf: (guard: Guard) => { readonly median: number; readonly max?: number },
  ) => readonly Guard[];
}

let check: Guards;
beforeAll(async () => {
  check = (await benchModule('check/guards.mjs')) as Guards;
});

describe('the check of the benchmarks', () => {
  it('passes a ratio down to the goal minus the margin, and fails below', () => {
    const [guard] = check.guards as [Guard];
    const least = guard.atLeast * (1 - check.MARGIN);
    const broken = (median: number) => check.brokenOf([guard], () => ({ median })).length;
    expect([broken(least), broken(least + 1), broken(least - 0.01), broken(NaN)]).toEqual([0, 0, 1, 1]);
  });

  it('passes if one round reaches the goal: the machine is busy', () => {
    const [guard] = check.guards as [Guard];
    const broken = (max: number) => check.brokenOf([guard], () => ({ median: 0.5, max })).length;
    expect([broken(guard.atLeast), broken(guard.atLeast - 0.01)]).toEqual([0, 1]);
  });
});

interface Counter {
  readonly take: (length: number) => void;
  readonly takeBytes: (count: number) => void;
  readonly result: Promise<{ readonly frames: number; readonly ns: number; readonly unitsPerFrame: number }>;
}

let counter: (of: { frameBytes: number; warmUpMs: number; countedMs: number }) => Counter;
beforeAll(async () => {
  ({ counter } = (await benchModule('support/measure.mjs')) as { counter: typeof counter });
});

// With this size the clock is read every 16 frames.
const frameBytes = 2 ** 20;
const atOnce = { frameBytes, warmUpMs: 0, countedMs: 0 };

describe('the counter', () => {
  it('counts frames after the warm-up only', async () => {
    const { take, result } = counter(atOnce);
    for (let n = 0; n < 16; n += 1) take(1);
    for (let n = 0; n < 16; n += 1) take(5);
    for (let n = 0; n < 16; n += 1) take(9);
    expect(await result).toMatchObject({ frames: 16, unitsPerFrame: 5 });
  });

  it('computes frames from bytes for a receiver that does not parse frames', async () => {
    const { takeBytes, result } = counter(atOnce);
    for (let n = 0; n < 64; n += 1) takeBytes(frameBytes / 2);
    expect(await result).toMatchObject({ frames: 16, unitsPerFrame: frameBytes });
  });

  it('continues until enough CPU time was used, and divides it by the frames', async () => {
    const { take, result } = counter({ frameBytes, warmUpMs: 2, countedMs: 10 });
    const until = { isDone: false };
    void result.then(() => (until.isDone = true));
    for (let n = 0; !until.isDone; n += 1) {
      take(1);
      if (n % 1_000 === 0) await Promise.resolve();
    }
    const { frames, ns } = await result;
    // Rounding may make it slightly less.
    expect(frames * ns).toBeGreaterThan(9.999e6);
  });
});

let bench: BenchLibrary;
beforeAll(async () => {
  bench = await benchLibrary();
});

const ns = (...values: number[]) => values.map((value) => ({ ns: value }));

describe('the median', () => {
  it('is that of the numbers, not of their texts', () => {
    expect([bench.median([2, 10, 1]), bench.median([10, 9, 100, 1])]).toEqual([2, 9.5]);
  });

  it('does not reorder the values, and throws for an empty list', () => {
    const values = [3, 1, 2];
    bench.median(values);
    expect(values).toEqual([3, 1, 2]);
    expect(() => bench.median([])).toThrow(RangeError);
  });
});

describe('a paired ratio', () => {
  it('is the median of the ratios of the pairs, not the ratio of the medians', () => {
    // The machine was three times slower in the second round, for both.
    const over = ns(20, 60, 22);
    const under = ns(10, 30, 10);
    expect(bench.pairedRatio(over, under, 'ns')).toEqual({ median: 2, min: 2, max: 2.2, rounds: 3 });
  });

  it('throws if samples cannot be paired or lack the field', () => {
    expect(() => bench.pairedRatio(ns(1, 2), ns(1), 'ns')).toThrow('2 and 1 samples');
    expect(() => bench.pairedRatio(ns(1), ns(0), 'ns')).toThrow('Round 1');
    expect(() => bench.pairedRatio(ns(1), ns(1), 'cpu')).toThrow('no ratio of cpu');
  });
});

describe('a sample', () => {
  const run = async (source: string, args: readonly string[] = []) => {
    const folder = await mkdtemp(join(tmpdir(), 'bench-sample-'));
    try {
      await writeFile(join(folder, 'one.mjs'), source);
      return await bench.sample(join(folder, 'one.mjs'), args);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };

  it('is the last line of a new process, which receives the arguments', async () => {
    const source = `console.log('hello'); console.log(JSON.stringify({ args: process.argv.slice(2), gc: typeof gc }));`;
    expect(await run(source, ['a', '1'])).toEqual({ args: ['a', '1'], gc: 'function' });
  });

  it.each([
    ['exits with an error, with its stderr', `console.error('no luck'); process.exit(3);`, /ended with 3\n[^]*no luck/],
    ['prints no JSON', `console.log('done');`, /not JSON: done/],
  ])('rejects if the process %s', async (_, source, message) => {
    await expect(run(source)).rejects.toThrow(message);
  });
});
