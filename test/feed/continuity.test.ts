/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { isAllCases, itInCi } from '../support/cases.js';
import { runMutants, runSeeds } from '../support/simulations.js';

// A busy machine needs much longer than the few seconds of an idle one.
const limitMs = 300_000;

describe('connections that settle, in virtual time: both plans, each reading of the contract, and any rate and jitter', () => {
  it(
    'lose frames only in gaps, and no complete window misses one, over each hop and for every seed',
    async () => {
      const { timelines, bad, counts } = await runSeeds('continuity', 1, isAllCases ? 160 : 16);
      expect(timelines.join('\n\n')).toBe('');
      expect(bad).toBe(0);
      for (const name of ['lost', 'gaps', 'completeWindows']) expect(counts[name]).toBeGreaterThan(20);
    },
    limitMs,
  );

  itInCi(
    'fail the checks when a rule is broken on purpose',
    async () => {
      const results = await runMutants('continuity');
      expect(results.length).toBeGreaterThanOrEqual(15);
      expect(results.filter(({ violations }) => violations.length === 0)).toEqual([]);
    },
    limitMs,
  );
});
