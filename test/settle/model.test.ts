/** @lane processes */
import { expect, it } from '@jest/globals';
import { limitMs, testSimulation } from '../simulation/suite.js';
import { isAllCases } from '../support/cases.js';
import { nodeFaults, runNodes } from './model/nodes.js';
import { judge } from './model/oracle.js';
import { simulate } from './model/simulate.js';
import { type Block, maxHeld } from './model/world.js';

testSimulation({
  room: 'settle',
  promise: 'no outcome is wrong in worlds with outages, reorganizations and blocks out of order, live and replayed',
  seeds: [200, 10],
  enough: ({ counts, states }, worlds) => {
    expect(counts['trades']).toBeGreaterThan(100 * worlds);
    expect(counts['corrections']).toBeGreaterThan(20 * worlds);
    const all = ['confirmed', 'expired', 'failed', 'reorged', 'replaced', 'unknown', 'unseen'];
    expect(Object.keys(states).sort()).toEqual(all);
  },
  brokenRules: 10,
});

it(
  'no outcome is wrong in worlds of this process, where the coverage is measured',
  () => {
    for (let seed = 301; seed <= (isAllCases ? 330 : 302); seed += 1)
      expect([seed, simulate(seed).violations]).toEqual([seed, []]);
  },
  limitMs,
);

it.each([
  ['lets a ledger stand still while a block waits for a missing one', maxHeld + 3, []],
  [
    'tells that a confirmation was not taken back once the block that waits is maxHeld blocks behind',
    maxHeld + 10,
    ['t1 in the end: confirmed, but it is not in the chain'],
  ],
])('the model %s', (_title, length, violations) => {
  const block = (name: string, height: number, parent: string, keys: readonly string[] = []) => {
    const what: Block = { id: `${name}${height}`, parent, height, entries: keys.map((key) => ({ key, slot: key })) };
    return { at: 100 * height + (name === 'c' ? 400 : 0), what };
  };
  // The outage swallows a3, so a4 waits. The blocks from c2 on take its branch back.
  const blocks = [block('a', 1, ''), block('a', 2, 'a1', ['t1']), block('a', 3, 'a2'), block('a', 4, 'a3')];
  for (let height = 2; height <= length; height += 1)
    blocks.push(block('c', height, height === 2 ? 'a1' : `c${height - 1}`));
  const outcome = { type: 'outcome', state: 'confirmed', key: 't1', value: undefined } as const;
  const world = {
    ...{ seed: 0, depth: 64, canFetch: false, begin: 0, end: 100_000, blocks, sights: [{ at: 150, what: 't1' }] },
    limits: { withinMs: 1_000, withinBlocks: Infinity, graceMs: 100, rememberMs: 1_000 },
    ...{ slotOf: new Map([['t1', 's1']]), feedOutages: [], ledgerOutages: [{ from: 250, to: 350, knownAt: 250 }] },
  };
  expect(judge(world, [{ ...outcome, at: 200, seenAt: 150, confirmedAt: 200, leadMs: 50 }])).toEqual(violations);
});

const worlds = nodeFaults.flatMap((fault) => [true, false].map((canFetch) => [fault, canFetch] as const));

it.each(worlds)(
  'a ledger whose node falls back expires no trade that the real chain has, and goes on (%s, fetchParent: %s)',
  (fault, canFetch) => {
    const world = { seed: 1, fault, canFetch, depth: 64, lag: 80, from: 110, length: 60 };
    const { wrong, outcomes } = runNodes(world);
    expect(wrong).toEqual([]);
    const states = new Set(outcomes.map(({ state }) => state));
    expect([...states]).toEqual(expect.arrayContaining(['confirmed', 'failed', 'expired', 'unknown']));
  },
);
