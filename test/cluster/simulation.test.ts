/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { cases, isAllCases, itInCi } from '../support/cases.js';
import { runMutants, runSeeds } from '../support/simulations.js';
import { explore, type ExploreOptions } from './simulation/explore.js';
import { faults } from './simulation/faults.js';
import { type Run, type RunOptions, simulate } from './simulation/simulate.js';

/** Runs seeds, and fails with the timeline of the first one that the observer objects to. */
const simulated = (count: number, options: RunOptions): readonly Run[] =>
  Array.from({ length: count }, (_, n) => {
    const { timeline, ...run } = simulate(n + 1, options);
    if (run.violations.length > 0) throw new Error([`Seed ${n + 1}:`, ...run.violations, ...timeline].join('\n'));
    return { ...run, timeline: [] };
  });

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
  const runs = isAllCases ? 1_000 : 50;
  it(
    `has one owner in the end, stops only for another client, and reports each loss: ${runs} seeds`,
    async () => {
      const { timelines, bad, faults: times, counts } = await runSeeds('cluster', 1, runs);
      expect(timelines.join('\n\n')).toBe('');
      expect(bad).toBe(0);
      expect(Object.keys(times).sort()).toEqual(Object.keys(faults).sort());
      expect(counts['isStopped']).toBeGreaterThan(runs / 10);
      expect(counts['takeovers']).toBeGreaterThan(runs / 10);
      expect(counts['frames']).toBeGreaterThan(50 * runs);
    },
    limitMs,
  );

  it(
    'keeps its owner when the engine is away and has lost all data',
    () => {
      const runs = simulated(cases(100), { faultNames: ['engine away', 'store wiped'], foreign: 'none' });
      expect(runs.filter(({ takeovers }) => takeovers > 0)).toEqual([]);
    },
    limitMs,
  );

  it(
    'stops for a foreign client that keeps reconnecting, and does not fight it',
    () => {
      for (const { isStopped } of simulated(cases(100), { faultNames: ['hand-over'], foreign: 'stubborn' }))
        expect(isStopped).toBe(true);
    },
    limitMs,
  );

  it('creates the same run from the same seed', () => {
    expect(simulate(7)).toEqual(simulate(7));
  });
});

itInCi(
  'detects each rule that is broken on purpose',
  async () => {
    const results = await runMutants('cluster');
    expect(results.length).toBeGreaterThanOrEqual(24);
    expect(results.filter(({ violations }) => violations.length === 0)).toEqual([]);
  },
  limitMs,
);
