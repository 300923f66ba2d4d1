import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchLibrary, benchLibrary } from './library.js';

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

  it('accepts a function of a sample', () => {
    const rate = ({ frames = 0, ms = 0 }) => frames / ms;
    const ratio = bench.pairedRatio([{ frames: 100, ms: 10 }], [{ frames: 10, ms: 2 }], rate);
    expect(ratio.median).toBe(2);
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

  it('reports by which share it was missed', () => {
    expect(goalOf(1.5, { atLeast: 2 }).missedBy).toBeCloseTo(0.25);
    expect(goalOf(3, { atMost: 2 }).missedBy).toBeCloseTo(0.5);
    expect(goalOf(3, { atMost: 0 }).missedBy).toBe(3);
    expect(goalOf(1, { atMost: 2 }).missedBy).toBe(0);
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
