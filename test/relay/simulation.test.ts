/** @lane processes */
import { expect } from '@jest/globals';
import { testSimulation } from '../simulation/suite.js';
import { isAllCases } from '../support/cases.js';

testSimulation({
  room: 'relay',
  promise: 'pages of relays with outages receive each frame once or in a gap, and no wrong complete window',
  seeds: [200, 6],
  enough: ({ faults, counts }) => {
    expect(Object.keys(faults)).toHaveLength(isAllCases ? 14 : 11);
    for (const name of ['received', 'gaps', 'completeWindows'])
      expect(counts[name]).toBeGreaterThan(isAllCases ? 50 : 20);
  },
  brokenRules: 22,
});
