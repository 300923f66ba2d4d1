/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { isAllCases, itInCi } from '../support/cases.js';
import { runMutants, runSeeds } from '../support/simulations.js';
import { simulate } from './simulation/simulate.js';

// A busy machine takes much longer than the few seconds of an idle one.
const limitMs = 300_000;

describe('a log with kills, power failures, full disks and lost segments, in virtual time', () => {
  const seeds = isAllCases ? 200 : 10;
  it(
    `has each frame once or in a gap, and keeps what a reader has received: ${seeds} seeds`,
    async () => {
      const { bad, timelines, faults, counts } = await runSeeds('log', 1, seeds);
      expect(timelines.join('\n\n')).toBe('');
      expect(bad).toBe(0);
      expect(Object.keys(faults)).toHaveLength(7);
      expect(counts['received']).toBeGreaterThan(200 * seeds);
      expect(counts['gaps']).toBeGreaterThan(15 * seeds);
    },
    limitMs,
  );

  it(
    'has no violation in this process either, where the coverage is measured',
    async () => {
      for (let seed = 301; seed <= (isAllCases ? 320 : 302); seed += 1)
        expect([seed, (await simulate(seed)).violations]).toEqual([seed, []]);
    },
    limitMs,
  );

  itInCi(
    'shows violations of each rule that is broken on purpose',
    async () => {
      const results = await runMutants('log');
      expect(results.length).toBeGreaterThanOrEqual(21);
      expect(results.filter(({ violations }) => violations.length === 0)).toEqual([]);
    },
    limitMs,
  );
});
