/** @lane processes */
import { expect, it } from '@jest/globals';
import { limitMs, testSimulation } from '../simulation/suite.js';
import { isAllCases } from '../support/cases.js';
import { simulate } from './simulation/simulate.js';

testSimulation({
  room: 'log',
  promise:
    'a log with kills, power failures, full disks and lost segments has each frame once or in a gap, and keeps it',
  seeds: [200, 10],
  enough: ({ faults, counts }, seeds) => {
    expect(Object.keys(faults)).toHaveLength(7);
    expect(counts['received']).toBeGreaterThan(200 * seeds);
    expect(counts['gaps']).toBeGreaterThan(15 * seeds);
  },
  brokenRules: 24,
});

it(
  'a simulated log has no violation in this process either, where the coverage is measured',
  async () => {
    for (let seed = 301; seed <= (isAllCases ? 320 : 302); seed += 1)
      expect([seed, (await simulate(seed)).violations]).toEqual([seed, []]);
  },
  limitMs,
);
