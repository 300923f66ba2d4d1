import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cases } from '../support/cases.js';
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

// A slow machine with the coverage needs much longer than the 5 s of a fast one.
const limitMs = 300_000;

describe('every order of the events of two replicas', () => {
  it.each<[ExploreOptions['from'], number]>([
    ['start', 1],
    ['owner', 1],
    ['owner', 2],
  ])(
    'leads from %s, with faults: %d, to no false stop, and to one owner in the end',
    (from, faultCount) => {
      const { violation, states, settled } = explore({
        from,
        faults: faultCount,
        depth: 200,
        maxStates: cases(50_000),
        settle: 20,
      });
      expect(violation).toBeUndefined();
      expect(states).toBeGreaterThanOrEqual(cases(50_000));
      expect(settled).toBe(20);
    },
    limitMs,
  );
});

describe('the election in virtual time, with random faults', () => {
  it.each([1, 501, 1_001, 1_501])(
    'has one owner in the end, stops only for another client, and reports each loss: up to 500 seeds from %d',
    (from) => {
      const runs = simulated(from, cases(500));
      const kinds = new Set(runs.flatMap((run) => Object.keys(run.faults)));
      expect([...kinds].sort()).toEqual(Object.keys(faults).sort());
      expect(runs.some(({ isStopped }) => isStopped)).toBe(true);
      expect(runs.some(({ takeovers }) => takeovers > 0)).toBe(true);
      expect(runs.reduce((sum, { frames }) => sum + frames, 0)).toBeGreaterThan(cases(100_000));
    },
    limitMs,
  );

  it(
    'keeps its owner when the engine is away and has lost all data',
    () => {
      const runs = simulated(1, cases(200), { faultNames: ['engine away', 'store wiped'], foreign: 'none' });
      expect(runs.filter(({ takeovers }) => takeovers > 0)).toEqual([]);
    },
    limitMs,
  );

  it(
    'stops for a stubborn foreign client, without a fight',
    () => {
      for (const { isStopped } of simulated(1, cases(200), { faultNames: ['hand-over'], foreign: 'stubborn' }))
        expect(isStopped).toBe(true);
    },
    limitMs,
  );

  it('creates the same run from the same seed', () => {
    expect(simulate(7)).toEqual(simulate(7));
  });
});

it(
  'detects rules that are broken on purpose',
  async () => {
    const program = fileURLToPath(new URL('programs/run-mutants.mjs', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program]);
    const results = JSON.parse(stdout) as readonly { readonly name: string; readonly violations: readonly string[] }[];
    expect(results.length).toBeGreaterThanOrEqual(5);
    for (const { name, violations } of results) expect([name, violations.length]).not.toEqual([name, 0]);
  },
  limitMs,
);
