/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { limitMs, testSimulation } from '../simulation/suite.js';
import { cases } from '../support/cases.js';
import { explore, type ExploreOptions } from './simulation/explore.js';
import { faults } from './simulation/faults.js';
import { type Run, type RunOptions, simulate } from './simulation/simulate.js';

/** Runs seeds, and fails with the timeline of the first one that the observer objects to. */
const simulated = async (count: number, options: RunOptions): Promise<readonly Run[]> => {
  const runs: Run[] = [];
  for (let seed = 1; seed <= count; seed += 1) {
    const run = await simulate(seed, options);
    if (run.violations.length > 0) throw new Error([`Seed ${seed}:`, ...run.violations, ...run.timeline].join('\n'));
    runs.push(run);
  }
  return runs;
};

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

testSimulation({
  room: 'cluster',
  promise: 'the replicas of an election have one owner in the end, stop only for another client, and report each loss',
  seeds: [400, 50],
  enough: ({ faults: times, counts }, runs) => {
    expect(Object.keys(times).sort()).toEqual(Object.keys(faults).sort());
    expect(counts['isStopped']).toBeGreaterThan(runs / 10);
    expect(counts['takeovers']).toBeGreaterThan(runs / 10);
    expect(counts['frames']).toBeGreaterThan(50 * runs);
  },
  brokenRules: 47,
});

describe('the election in virtual time', () => {
  it(
    'keeps its owner when the engine is away and has lost all data',
    async () => {
      const runs = await simulated(cases(100), { faultNames: ['engine away', 'store wiped'], foreign: 'none' });
      expect(runs.filter(({ takeovers }) => takeovers > 0)).toEqual([]);
    },
    limitMs,
  );

  it(
    'stops for a foreign client that keeps reconnecting, and does not fight it',
    async () => {
      for (const { isStopped } of await simulated(cases(100), { faultNames: ['hand-over'], foreign: 'stubborn' }))
        expect(isStopped).toBe(true);
    },
    limitMs,
  );

  it.each([false, true])('creates the same run from the same seed, with a store: %s', async (hasLine) => {
    expect(await simulate(7, { hasLine })).toEqual(await simulate(7, { hasLine }));
  });
});
