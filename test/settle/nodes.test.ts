import { describe, expect, it } from '@jest/globals';
import { nodeFaults, runNodes } from './model/nodes.js';

const worlds = nodeFaults.flatMap((fault) => [true, false].map((canFetch) => [fault, canFetch] as const));

describe('a ledger whose node falls back', () => {
  it.each(worlds)('expires no trade that the real chain has, and goes on (%s, fetchParent: %s)', (fault, canFetch) => {
    const world = { seed: 1, fault, canFetch, depth: 64, lag: 80, from: 110, length: 60 };
    const { wrong, outcomes } = runNodes(world);
    expect(wrong).toEqual([]);
    const states = new Set(outcomes.map(({ state }) => state));
    expect([...states]).toEqual(expect.arrayContaining(['confirmed', 'failed', 'expired', 'unknown']));
  });
});
