import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { firstIndexWhere, TimeIndex } from '../../src/relay/time-index.js';
import { range } from './support.js';
import { cases } from '../support/cases.js';

describe('TimeIndex', () => {
  it('returns the results of a scan for any times, also after the oldest events were dropped', () => {
    const step = fc.record({ time: fc.nat(20), drops: fc.nat(2) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const index = new TimeIndex();
        let stored: { seq: number; time: number }[] = [];
        let dropped = 0;
        for (const [n, { time, drops }] of steps.entries()) {
          index.add(n + 1, time);
          stored.push({ seq: n + 1, time });
          dropped = Math.min(n + 1, dropped + drops);
          stored = stored.filter(({ seq }) => seq > dropped);
          index.dropUntil(dropped);
          for (const at of range(0, 21)) {
            expect(index.lastUntil(at)).toBe(stored.findLast((each) => each.time <= at)?.seq);
            const after = stored.filter(({ seq }) => seq > dropped + at).map((each) => each.time);
            expect(index.earliestAfter(dropped + at)).toBe(Math.min(...after));
          }
        }
      }),
      { numRuns: cases(100) },
    );
  });

  it('checks few events for each search', () => {
    let checks = 0;
    const found = firstIndexWhere(0, 50_000, (n) => {
      checks += 1;
      return n >= 31_234;
    });
    expect(found).toBe(31_234);
    expect(checks).toBeLessThan(18);
  });
});
