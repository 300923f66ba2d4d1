import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isAllCases } from '../support/cases.js';

interface Scenario {
  readonly violations: readonly string[];
  /** Gaps of the page, from the fault on. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  /** How many frames the page hasn't received. */
  readonly missing: number;
}

interface Results {
  readonly scenarios: Readonly<Record<'moves' | 'restarts' | 'stalls', Scenario>>;
  readonly sums: Readonly<Record<'bad' | 'received' | 'gaps' | 'completeWindows', number>> & {
    readonly faults: Readonly<Record<string, number>>;
    readonly timelines: readonly string[];
  };
  /** `seed` detects the broken rule; `undefined` if none does. */
  readonly rules: readonly { readonly name: string; readonly seed?: number }[];
}

describe('pages of relays with outages, in virtual time', () => {
  let results: Results;
  // A busy machine needs much longer than the few seconds of an idle one.
  beforeAll(async () => {
    const program = fileURLToPath(new URL('simulation/run.mjs', import.meta.url));
    const args = [program, isAllCases ? '200' : '25'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 24 });
    results = JSON.parse(stdout) as Results;
  }, 600_000);

  it('receive the lost frames in a gap when they move to a relay that has them, when their relay restarts in an outage, and behind a relay whose connection has stalled', () => {
    const { moves, restarts, stalls } = results.scenarios;
    for (const { violations, missing } of [moves, restarts, stalls]) {
      expect(violations).toEqual([]);
      expect(missing).toBeGreaterThan(20);
    }
    expect([moves.gaps.length, moves.gaps[0]!.from, moves.gaps[0]!.to > 5_500]).toEqual([1, 0, true]);
    expect([restarts.gaps.length, restarts.gaps[0]!.from, restarts.gaps[0]!.to > 5_000]).toEqual([1, 0, true]);
    // The last frame before the fault.
    expect(stalls.gaps[0]!.from).toBeLessThanOrEqual(0);
    expect(stalls.gaps[0]!.from).toBeGreaterThan(-1_500);
  });

  it('receive each frame once or in a gap, and no wrong complete window, for every seed', () => {
    const { timelines, bad, faults, received, gaps, completeWindows } = results.sums;
    expect(timelines.join('\n\n')).toBe('');
    expect([bad, Object.keys(faults).length]).toEqual([0, 11]);
    for (const count of [received, gaps, completeWindows]) expect(count).toBeGreaterThan(50);
  });

  it('fail the checks when a rule is broken on purpose', () => {
    expect(results.rules.length).toBeGreaterThanOrEqual(isAllCases ? 12 : 4);
    expect(results.rules.filter(({ seed }) => seed === undefined).map(({ name }) => name)).toEqual([]);
  });
});
