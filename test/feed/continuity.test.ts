/** @lane processes */
import { expect } from '@jest/globals';
import { testSimulation } from '../simulation/suite.js';

testSimulation({
  room: 'continuity',
  promise:
    'connections that settle lose frames only in gaps, and no complete window misses one, over each hop, plan, rate and jitter',
  seeds: [160, 16],
  enough: ({ counts }) => {
    for (const name of ['lost', 'gaps', 'completeWindows']) expect(counts[name]).toBeGreaterThan(20);
  },
  brokenRules: 20,
});
