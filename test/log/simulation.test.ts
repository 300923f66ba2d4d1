import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isAllCases } from '../support/cases.js';
import { simulate } from './simulation/simulate.js';

/** Runs a program from `programs` outside jest, where coverage can't slow it down. Returns what it prints. */
const runProgram = async (name: string, ...args: readonly string[]): Promise<unknown> => {
  const program = fileURLToPath(new URL(`programs/${name}`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    maxBuffer: 2 ** 24,
    timeout: 240_000,
  });
  return JSON.parse(stdout) as unknown;
};

interface Sums {
  readonly bad: number;
  readonly received: number;
  readonly gaps: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly timelines: readonly string[];
}

// A busy machine takes much longer than the few seconds of an idle one.
const limitMs = 300_000;

describe('a log with kills, power failures and full disks, in virtual time', () => {
  it(
    'has each frame once or in a gap, and keeps what a reader has received, in every seed',
    async () => {
      const sums = (await runProgram('run-seeds.mjs', '1', '200')) as Sums;
      expect(sums.timelines.join('\n\n')).toBe('');
      expect(sums.bad).toBe(0);
      expect(Object.keys(sums.faults)).toHaveLength(6);
      for (const count of [sums.received, sums.gaps]) expect(count).toBeGreaterThan(1_000);
    },
    limitMs,
  );

  it(
    'has no violation in this process either, where the coverage is measured',
    async () => {
      for (let seed = 301; seed <= (isAllCases ? 460 : 340); seed += 1)
        expect([seed, (await simulate(seed)).violations]).toEqual([seed, []]);
    },
    limitMs,
  );

  it(
    'shows violations of each rule that is broken on purpose',
    async () => {
      const results = (await runProgram('run-mutants.mjs')) as readonly {
        name: string;
        violations: readonly string[];
      }[];
      expect(results.length).toBeGreaterThanOrEqual(isAllCases ? 21 : 7);
      expect(results.filter(({ violations }) => violations.length === 0).map(({ name }) => name)).toEqual([]);
    },
    limitMs,
  );
});
