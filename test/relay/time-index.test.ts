import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { firstIndexWhere, TimeIndex } from '../../src/relay/time-index.js';
import { range } from './support.js';
import { cases } from '../support/cases.js';

describe('TimeIndex', () => {
  it('finds what a scan finds, whatever the times, also after the oldest events were dropped', () => {
    const step = fc.record({ time: fc.nat(20), drops: fc.nat(2) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const index = new TimeIndex();
        let held: { seq: number; time: number }[] = [];
        let dropped = 0;
        for (const [n, { time, drops }] of steps.entries()) {
          index.add(n + 1, time);
          held.push({ seq: n + 1, time });
          dropped = Math.min(n + 1, dropped + drops);
          held = held.filter(({ seq }) => seq > dropped);
          index.dropUntil(dropped);
          for (const asked of range(0, 21)) {
            expect(index.lastUntil(asked)).toBe(held.findLast((each) => each.time <= asked)?.seq);
            const after = held.filter(({ seq }) => seq > dropped + asked).map((each) => each.time);
            expect(index.earliestAfter(dropped + asked)).toBe(Math.min(...after));
          }
        }
      }),
      { numRuns: cases(100) },
    );
  });

  it('looks at a few events for each search', () => {
    let looks = 0;
    const found = firstIndexWhere(0, 50_000, (n) => {
      looks += 1;
      return n >= 31_234;
    });
    expect(found).toBe(31_234);
    expect(looks).toBeLessThan(18);
  });
});
