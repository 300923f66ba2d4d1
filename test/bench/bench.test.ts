import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { read } from '../docs/fences.js';
import { type BenchLibrary, benchLibrary, benchModule } from './library.js';

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
  it.each([
    [[3], 3],
    [[9, 1, 5], 5],
    [[10, 9, 100, 1], 9.5],
    [[2, 10, 1], 2], // as numbers, not as texts
  ])('of %j is %d', (values, expected) => {
    expect(bench.median(values)).toBe(expected);
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

describe('a goal', () => {
  const goalOf = (ratio: number, wanted: { atLeast?: number; atMost?: number }) =>
    bench.goal({ id: 'a', what: 'b', ratio, ...wanted });

  it('is met at its bound and beyond', () => {
    expect([goalOf(3, { atLeast: 3 }).met, goalOf(3.5, { atLeast: 3 }).met, goalOf(2.9, { atLeast: 3 }).met]).toEqual([
      true,
      true,
      false,
    ]);
    expect([goalOf(3, { atMost: 3 }).met, goalOf(2.5, { atMost: 3 }).met, goalOf(3.1, { atMost: 3 }).met]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('compares the median of a paired ratio, and includes its rounds', () => {
    const ratio = { median: 2, min: 0.5, max: 9, rounds: 9 };
    expect(bench.goal({ id: 'a', what: 'b', ratio, atLeast: 2 })).toMatchObject({ ...ratio, met: true });
    expect(bench.goal({ id: 'a', what: 'b', ratio, atMost: 1 }).met).toBe(false);
    expect(bench.goal({ id: 'a', what: 'b', ratio, atMost: 2 }).met).toBe(true);
  });

  it('requires exactly one bound', () => {
    expect(() => goalOf(1, {})).toThrow(TypeError);
    expect(() => goalOf(1, { atLeast: 1, atMost: 2 })).toThrow(TypeError);
  });
});

describe('interleaved', () => {
  it('measures A B C, then A B C again, and returns the samples of each by round', async () => {
    jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const order: string[] = [];
    const contender = (name: string) => () => Promise.resolve({ turn: order.push(name) });
    const samples = await bench.interleaved({
      contenders: { a: contender('a'), b: contender('b'), c: contender('c') },
      rounds: 2,
      title: 'test',
    });
    expect(order.join('')).toBe('abcabc');
    expect(samples).toEqual({
      a: [{ turn: 1 }, { turn: 4 }],
      b: [{ turn: 2 }, { turn: 5 }],
      c: [{ turn: 3 }, { turn: 6 }],
    });
  });
});

describe('a sample', () => {
  const run = async (source: string, args: readonly string[] = []) => {
    const folder = await mkdtemp(join(tmpdir(), 'bench-sample-'));
    try {
      await writeFile(join(folder, 'one.mjs'), source);
      return await bench.sample(join(folder, 'one.mjs'), args, { nodeArgs: ['--expose-gc'] });
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

describe('the pages of the benchmarks', () => {
  it('have one section for each', async () => {
    const { benchmarks } = (await benchModule('programs.mjs')) as { benchmarks: object };
    const { pagesOf } = (await benchModule('lib/pages.mjs')) as { pagesOf: (report: string) => readonly string[] };
    const marks = pagesOf('performance').flatMap((page) => [...read(page).matchAll(/<!-- bench:(\w+) -->/g)]);
    const names = ['apps', 'goals', 'opening', ...Object.keys(benchmarks)];
    expect(marks.map(([, name]) => name).sort()).toEqual(names.sort());
  });
});
