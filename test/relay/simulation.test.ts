/** @lane processes */
import { expect } from '@jest/globals';
import { limitMs, printedBy, testSimulation } from '../simulation/suite.js';
import { isAllCases, itInCi } from '../support/cases.js';

interface Scenario {
  readonly violations: readonly string[];
  /** Gaps of the page, from the fault on. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  /** How many frames the page hasn't received. */
  readonly missing: number;
}

testSimulation({
  room: 'relay',
  promise: 'pages of relays with outages receive each frame once or in a gap, and no wrong complete window',
  seeds: [200, 5],
  enough: ({ faults, counts }) => {
    expect(Object.keys(faults)).toHaveLength(isAllCases ? 14 : 11);
    for (const name of ['received', 'gaps', 'completeWindows'])
      expect(counts[name]).toBeGreaterThan(isAllCases ? 50 : 20);
  },
  brokenRules: 19,
});

itInCi(
  'a page receives the lost frames in a gap when it moves to a relay that has them, when its relay restarts in an outage, and behind a relay whose connection has stalled',
  async () => {
    const program = new URL('simulation/run-scenarios.mjs', import.meta.url);
    const { moves, restarts, stalls } = (await printedBy(program)) as Record<'moves' | 'restarts' | 'stalls', Scenario>;
    for (const { violations, missing } of [moves, restarts, stalls]) {
      expect(violations).toEqual([]);
      expect(missing).toBeGreaterThan(20);
    }
    for (const [{ gaps }, leastMs] of [
      [moves, 5_500],
      [restarts, 5_000],
    ] as const)
      expect([gaps.length, gaps[0]!.from, gaps[0]!.to > leastMs]).toEqual([1, 0, true]);
    // The last frame before the fault.
    expect(stalls.gaps[0]!.from).toBeLessThanOrEqual(0);
    expect(stalls.gaps[0]!.from).toBeGreaterThan(-1_500);
  },
  limitMs,
);
