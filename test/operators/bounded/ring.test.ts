import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Ring } from '../../../src/operators/bounded/ring.js';
import { cases } from '../../support/cases.js';

describe('Ring', () => {
  it('returns values in order of insertion, with the right size and oldest value, for any interleaving', () => {
    const step = fc.oneof(
      { weight: 12, arbitrary: fc.record({ push: fc.option(fc.nat(), { nil: undefined }) }) },
      { weight: 9, arbitrary: fc.constant('shift' as const) },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
        const ring = new Ring<number | undefined>();
        let model: (number | undefined)[] = [];
        for (const each of steps) {
          if (each === 'shift') expect(ring.shift()).toBe(model.shift());
          else if (each === 'clear') {
            ring.clear();
            model = [];
          } else {
            ring.push(each.push);
            model.push(each.push);
          }
          expect([ring.size, ring.oldest]).toEqual([model.length, model[0]]);
          expect(model.map((_, index) => ring.at(index))).toEqual(model);
        }
        while (model.length > 0) expect(ring.shift()).toBe(model.shift());
        expect(ring.size).toBe(0);
      }),
      { numRuns: cases(100) },
    );
  });

  it('keeps no removed value alive', async () => {
    const ring = new Ring<object>();
    const collected = await collectedOf((tracked) => {
      for (let i = 0; i < 40; i += 1) ring.push(tracked({}));
      while (ring.size > 20) ring.shift();
      ring.clear();
      for (let i = 0; i < 5; i += 1) ring.push(tracked({}));
      while (ring.size > 0) ring.shift();
    });
    expect(collected).toBe(45);
    expect(ring.size).toBe(0);
  });

  it('takes the same time per value for any size', () => {
    const ring = new Ring<number>();
    for (let i = 0; i < 500_000; i += 1) ring.push(i);
    const started = process.cpuUsage();
    for (let i = 0; i < 200_000; i += 1) {
      ring.shift();
      ring.push(i);
    }
    // With an array this takes minutes: each `shift` moves half a million values.
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000);
  });
});

// Counts how many of the created objects the garbage collector frees.
const collectedOf = async (use: (tracked: (object: object) => object) => void): Promise<number> => {
  const references: WeakRef<object>[] = [];
  use((object) => {
    references.push(new WeakRef(object));
    return object;
  });
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const count = () => references.filter((reference) => reference.deref() === undefined).length;
  for (let turn = 0; turn < 20 && count() < references.length; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
  }
  return count();
};
