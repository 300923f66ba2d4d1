import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isAllCases } from '../support/cases.js';

/** Runs a program of the folder `programs` outside jest, where no coverage slows it down. Returns what it prints. */
const runProgram = async (name: string, ...args: readonly string[]): Promise<unknown> => {
  const program = fileURLToPath(new URL(`programs/${name}`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout) as unknown;
};

interface Sums {
  readonly bad: number;
  readonly received: number;
  readonly gaps: number;
  readonly completeWindows: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly timelines: readonly string[];
}

interface Result {
  readonly violations: readonly string[];
  /** Gaps of the page, from the fault on. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  /** How many frames the page hasn't received. */
  readonly missing: number;
}

// A busy machine needs much longer than the few seconds of an idle one.
const limitMs = 300_000;

describe('pages of relays with outages, in virtual time', () => {
  it(
    'receive the lost frames in a gap when they move to a relay that has them, when their relay restarts in an outage, and behind a relay whose connection has stalled',
    async () => {
      const results = (await runProgram('run-scenarios.mjs')) as Readonly<Record<string, Result>>;
      for (const { violations } of Object.values(results)) expect(violations).toEqual([]);
      const { moves, restarts, stalls } = results as Record<'moves' | 'restarts' | 'stalls', Result>;
      for (const { missing } of [moves, restarts, stalls]) expect(missing).toBeGreaterThan(20);
      expect(moves.gaps).toEqual([{ from: 0, to: expect.any(Number) }]);
      expect(moves.gaps[0]!.to).toBeGreaterThan(5_500);
      expect(restarts.gaps).toEqual([{ from: 0, to: expect.any(Number) }]);
      expect(restarts.gaps[0]!.to).toBeGreaterThan(5_000);
      // The last frame before the fault.
      expect(stalls.gaps[0]!.from).toBeLessThanOrEqual(0);
      expect(stalls.gaps[0]!.from).toBeGreaterThan(-1_500);
    },
    limitMs,
  );

  it(
    'receive each frame once or in a gap, and no wrong complete window, for every seed',
    async () => {
      const sums = (await runProgram('run-seeds.mjs', '1', isAllCases ? '200' : '50')) as Sums;
      expect(sums.timelines.join('\n\n')).toBe('');
      expect(sums.bad).toBe(0);
      expect(Object.keys(sums.faults)).toHaveLength(11);
      for (const count of [sums.received, sums.gaps, sums.completeWindows]) expect(count).toBeGreaterThan(100);
    },
    limitMs,
  );

  it(
    'fail the checks when a rule is broken on purpose',
    async () => {
      const results = (await runProgram('run-mutants.mjs')) as readonly {
        name: string;
        violations: readonly string[];
      }[];
      expect(results.length).toBeGreaterThanOrEqual(isAllCases ? 12 : 4);
      expect(results.filter(({ violations }) => violations.length === 0).map(({ name }) => name)).toEqual([]);
    },
    limitMs,
  );
});
