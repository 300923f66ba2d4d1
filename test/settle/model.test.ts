import { expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isAllCases } from '../support/cases.js';
import { simulate } from './model/simulate.js';

/** Runs a program from `model` outside jest, where coverage can't slow it down. Returns what it prints. */
const runProgram = async (name: string, ...args: readonly string[]): Promise<unknown> => {
  const program = fileURLToPath(new URL(`model/${name}`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout) as unknown;
};

// A busy machine takes much longer than the few seconds of an idle one.
const limitMs = 300_000;

it(
  'no outcome is wrong in 200 worlds with outages, reorganizations and blocks out of order, live and replayed',
  async () => {
    const sums = (await runProgram('run-seeds.mjs', '1', '200')) as Record<'bad' | 'trades' | 'corrections', number> & {
      readonly timelines: readonly string[];
      readonly states: Readonly<Record<string, number>>;
    };
    expect(sums.timelines.join('\n\n')).toBe('');
    expect(sums.bad).toBe(0);
    expect(sums.trades).toBeGreaterThan(10_000);
    expect(sums.corrections).toBeGreaterThan(1_000);
    expect(Object.keys(sums.states).sort()).toEqual([
      'confirmed',
      'expired',
      'reorged',
      'replaced',
      'unknown',
      'unseen',
    ]);
  },
  limitMs,
);

it(
  'no outcome is wrong in worlds of this process, where the coverage is measured',
  () => {
    for (let seed = 301; seed <= (isAllCases ? 560 : 303); seed += 1)
      expect([seed, simulate(seed).violations]).toEqual([seed, []]);
  },
  limitMs,
);

it(
  'the model finds each rule that is left out on purpose',
  async () => {
    const results = (await runProgram('run-mutants.mjs')) as readonly { name: string; violations: readonly string[] }[];
    expect(results).toHaveLength(4);
    expect(results.filter(({ violations }) => violations.length === 0)).toEqual([]);
  },
  limitMs,
);
