import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { isAllCases, itInCi } from '../support/cases.js';

interface Sums {
  readonly bad: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly states: Readonly<Record<string, number>>;
  readonly timelines: readonly string[];
}

/** A rule that is broken on purpose, and what a run has found. */
interface Detected {
  readonly name: string;
  readonly violations: readonly string[];
}

interface Suite {
  /** The folder of the world, by its name in `test/support/simulation.mjs`. */
  readonly room: 'cluster' | 'continuity' | 'log' | 'relay' | 'settle';
  /** What every run keeps to. */
  readonly promise: string;
  /** How many seeds run in CI, and in `npm test`. */
  readonly seeds: readonly [inCi: number, otherwise: number];
  /** Checks that the runs did enough. */
  readonly enough: (sums: Sums, seeds: number) => void;
  readonly brokenRules: number;
}

// A busy machine with coverage takes much longer than the few seconds of an idle one.
export const limitMs = 300_000;

/** Runs a program in a separate process, where no coverage slows it down. Resolves with the JSON that it prints. */
export const printedBy = async (program: string | URL, ...args: readonly string[]): Promise<unknown> => {
  const options = { maxBuffer: 2 ** 24, timeout: limitMs - 60_000 };
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(program), ...args], options);
  return JSON.parse(stdout) as unknown;
};

const program = new URL('../support/run-simulation.mjs', import.meta.url);

/** Tests a world: no run of its first seeds is wrong, and a run finds each rule that is broken on purpose. */
export const testSimulation = ({ room, promise, seeds: [inCi, otherwise], enough, brokenRules }: Suite): void => {
  const seeds = isAllCases ? inCi : otherwise;
  it(
    `${promise}: ${seeds} seeds`,
    async () => {
      const sums = (await printedBy(program, room, 'seeds', '1', `${seeds}`)) as Sums;
      expect(sums.timelines.join('\n\n')).toBe('');
      expect(sums.bad).toBe(0);
      enough(sums, seeds);
    },
    limitMs,
  );

  itInCi(
    `the simulation of ${room} finds each rule that is broken on purpose`,
    async () => {
      const results = (await printedBy(program, room, 'mutants')) as readonly Detected[];
      expect(results).toHaveLength(brokenRules);
      expect(results.filter(({ violations }) => violations.length === 0)).toEqual([]);
    },
    limitMs,
  );
};
