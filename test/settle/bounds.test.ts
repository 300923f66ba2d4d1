/**
 * @lane processes
 * @ci
 */
import { expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { bundledPrograms } from '../support/bundled-programs.js';

const programOf = bundledPrograms('test/settle', ['memory.mjs', 'ledger-memory.mjs']);

const count = 400_000;

/** More time than any machine needs. */
const limitMs = 300_000;

it.each([
  ['standing', 'a ledger that stands still'],
  ['moving', 'a ledger that moves'],
])(
  'settle keeps its bounds in a heap of 64 MB (%s: %s)',
  async (kind) => {
    const args = ['--max-old-space-size=64', programOf('memory.mjs'), String(count), kind];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { states, arrayBuffers } = JSON.parse(stdout) as {
      readonly states: Readonly<Record<string, number>>;
      readonly arrayBuffers: number;
    };
    const decided = Object.values(states).reduce((sum, times) => sum + times, 0);
    expect(decided).toBeGreaterThanOrEqual(count - 20_000);
    if (kind === 'standing') expect(states).toEqual({ unknown: decided });
    else expect(states['confirmed']).toBeGreaterThan(0.4 * count);
    // maxBytes, plus what the garbage collector hasn't freed yet.
    expect(arrayBuffers).toBeLessThan(64 * 1024 * 1024);
  },
  limitMs,
);

it(
  'ledger keeps at most six times depth blocks of a node that falls back, and fetches at most depth parents for a block',
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', programOf('ledger-memory.mjs')]);
    const { depth, count, results } = JSON.parse(stdout) as {
      readonly depth: number;
      readonly count: number;
      readonly results: readonly { readonly kept: number; readonly fetched: number; readonly isObserved: boolean }[];
    };
    expect(results).toHaveLength(14);
    const isBad = ({ kept, fetched, isObserved }: (typeof results)[number]): boolean =>
      kept > 6 * depth || fetched > (depth + 1) * count || !isObserved;
    expect(results.filter(isBad)).toEqual([]);
  },
  limitMs,
);
