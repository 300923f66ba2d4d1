/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isAllCases, itInCi } from '../support/cases.js';
import { runMutants, runSeeds } from '../support/simulations.js';

interface Scenario {
  readonly violations: readonly string[];
  /** Gaps of the page, from the fault on. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  /** How many frames the page hasn't received. */
  readonly missing: number;
}

// A busy machine needs much longer than the few seconds of an idle one.
const limitMs = 300_000;

describe('pages of relays with outages, in virtual time', () => {
  itInCi(
    'receive the lost frames in a gap when they move to a relay that has them, when their relay restarts in an outage, and behind a relay whose connection has stalled',
    async () => {
      const program = fileURLToPath(new URL('simulation/run-scenarios.mjs', import.meta.url));
      const { stdout } = await promisify(execFile)(process.execPath, [program]);
      const { moves, restarts, stalls } = JSON.parse(stdout) as Record<'moves' | 'restarts' | 'stalls', Scenario>;
      for (const { violations, missing } of [moves, restarts, stalls]) {
        expect(violations).toEqual([]);
        expect(missing).toBeGreaterThan(20);
      }
      expect([moves.gaps.length, moves.gaps[0]!.from, moves.gaps[0]!.to > 5_500]).toEqual([1, 0, true]);
      expect([restarts.gaps.length, restarts.gaps[0]!.from, restarts.gaps[0]!.to > 5_000]).toEqual([1, 0, true]);
      // The last frame before the fault.
      expect(stalls.gaps[0]!.from).toBeLessThanOrEqual(0);
      expect(stalls.gaps[0]!.from).toBeGreaterThan(-1_500);
    },
    limitMs,
  );

  it(
    'receive each frame once or in a gap, and no wrong complete window, for every seed',
    async () => {
      const { timelines, bad, faults, counts } = await runSeeds('relay', 1, isAllCases ? 200 : 5);
      expect(timelines.join('\n\n')).toBe('');
      expect([bad, Object.keys(faults).length]).toEqual([0, isAllCases ? 14 : 11]);
      for (const name of ['received', 'gaps', 'completeWindows'])
        expect(counts[name]).toBeGreaterThan(isAllCases ? 50 : 20);
    },
    limitMs,
  );

  itInCi(
    'fail the checks when a rule is broken on purpose',
    async () => {
      const results = await runMutants('relay');
      expect(results.length).toBeGreaterThanOrEqual(12);
      expect(results.filter(({ violations }) => violations.length === 0)).toEqual([]);
    },
    limitMs,
  );
});
