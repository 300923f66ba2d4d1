import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cases, isAllCases } from '../support/cases.js';
import { explore, type ExploreOptions } from './simulation/explore.js';
import { faults } from './simulation/faults.js';
import { type Run, type RunOptions, simulate } from './simulation/simulate.js';

/** Runs seeds, and fails with the timeline of the first one that the observer objects to. */
const simulated = (from: number, count: number, options: RunOptions = {}): readonly Run[] => {
  const runs: Run[] = [];
  for (let seed = from; seed < from + count; seed += 1) {
    const { timeline, ...run } = simulate(seed, options);
    if (run.violations.length > 0) throw new Error([`Seed ${seed}:`, ...run.violations, ...timeline].join('\n'));
    runs.push({ ...run, timeline: [] });
  }
  return runs;
};

/** Runs a program of the folder `programs` outside jest, where no coverage slows it down. Returns what it prints. */
const runProgram = async (name: string, ...args: readonly string[]): Promise<unknown> => {
  const program = fileURLToPath(new URL(`programs/${name}`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout) as unknown;
};

interface Sums {
  readonly bad: number;
  readonly runs: number;
  readonly stopped: number;
  readonly takeovers: number;
  readonly frames: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly timelines: readonly string[];
}

// A slow machine with coverage needs much longer than the 5 s of a fast one.
const limitMs = 300_000;

describe('every order of the events of two replicas', () => {
  it.each<[ExploreOptions['from'], number]>([
    ['start', 1],
    ['owner', 2],
  ])(
    'leads from %s, with faults: %d, to no false stop, and to one owner in the end',
    (from, faultCount) => {
      const { violation, states, settled } = explore({
        from,
        faults: faultCount,
        depth: 200,
        maxStates: cases(15_000),
        settle: 20,
      });
      expect(violation).toBeUndefined();
      expect(states).toBeGreaterThanOrEqual(cases(15_000));
      expect(settled).toBe(20);
    },
    limitMs,
  );
});

describe('the election in virtual time, with random faults', () => {
  const runs = isAllCases ? 1_000 : 300;
  it(
    `has one owner in the end, stops only for another client, and reports each loss: ${runs} seeds`,
    async () => {
      const sums = (await runProgram('run-seeds.mjs', '1', `${runs}`)) as Sums;
      expect(sums.timelines.join('\n\n')).toBe('');
      expect(sums).toMatchObject({ runs, bad: 0 });
      expect(Object.keys(sums.faults).sort()).toEqual(Object.keys(faults).sort());
      expect(sums.stopped).toBeGreaterThan(runs / 10);
      expect(sums.takeovers).toBeGreaterThan(runs / 10);
      expect(sums.frames).toBeGreaterThan(50 * runs);
    },
    limitMs,
  );

  it(
    'keeps its owner when the engine is away and has lost all data',
    () => {
      const runs = simulated(1, cases(100), { faultNames: ['engine away', 'store wiped'], foreign: 'none' });
      expect(runs.filter(({ takeovers }) => takeovers > 0)).toEqual([]);
    },
    limitMs,
  );

  it(
    'stops for a foreign client that keeps reconnecting, and does not fight it',
    () => {
      for (const { isStopped } of simulated(1, cases(100), { faultNames: ['hand-over'], foreign: 'stubborn' }))
        expect(isStopped).toBe(true);
    },
    limitMs,
  );

  it('creates the same run from the same seed', () => {
    expect(simulate(7)).toEqual(simulate(7));
  });
});

it(
  'detects each rule that is broken on purpose',
  async () => {
    const results = (await runProgram('run-mutants.mjs')) as readonly {
      readonly name: string;
      readonly seed?: number;
    }[];
    expect(results.length).toBeGreaterThanOrEqual(isAllCases ? 24 : 8);
    expect(results.filter(({ seed }) => seed === undefined)).toEqual([]);
  },
  limitMs,
);
