import { beforeAll, describe, expect, it } from '@jest/globals';
import { benchModule } from './library.js';

interface Guard {
  readonly id: string;
  readonly over: readonly (string | number)[];
  readonly under: readonly (string | number)[];
  readonly atLeast: number;
}

interface Guards {
  readonly MARGIN: number;
  readonly guards: readonly Guard[];
  readonly contendersOf: (some: readonly Guard[]) => readonly (readonly (string | number)[])[];
  readonly brokenOf: (
    some: readonly Guard[],
    ratioOf: (guard: Guard) => { readonly median: number; readonly max?: number },
  ) => readonly Guard[];
}

let check: Guards;
beforeAll(async () => {
  check = (await benchModule('check/guards.mjs')) as Guards;
});

describe('the check of the benchmarks', () => {
  it('checks the goals of receiving, of the compiled guard and of an import', () => {
    expect(check.guards.map(({ id, atLeast }) => [id, atLeast])).toEqual([
      ['rxjs/ours/200', 3],
      ['rxjs/ours/1024', 2.3],
      ['ws/ours6/200', 1.3],
      ['ws/ours6/1024', 1.3],
      ['parse/guard', 20],
      ['decode/guard', 20],
      ['import/ours', 1.7],
      ['import/operators', 0.9],
    ]);
  });

  it('passes a ratio down to the goal minus the margin, and fails below', () => {
    const [guard] = check.guards as [Guard];
    const least = guard.atLeast * (1 - check.MARGIN);
    const broken = (median: number) => check.brokenOf([guard], () => ({ median })).length;
    expect([broken(least), broken(least + 1), broken(least - 0.01), broken(NaN)]).toEqual([0, 0, 1, 1]);
  });

  it('passes if one round reaches the goal: the machine is busy', () => {
    const [guard] = check.guards as [Guard];
    const broken = (max: number) => check.brokenOf([guard], () => ({ median: 0.5, max })).length;
    expect([broken(guard.atLeast), broken(guard.atLeast - 0.01)]).toEqual([0, 1]);
  });

  it('fails each ratio separately', () => {
    const broken = check.brokenOf(check.guards, ({ id, atLeast }) => ({
      median: id === 'ws/ours6/200' ? atLeast / 2 : atLeast,
    }));
    expect(broken.map(({ id }) => id)).toEqual(['ws/ours6/200']);
  });

  it('measures each contender once', () => {
    const names = check.contendersOf(check.guards).map((each) => each.join(' '));
    expect(new Set(names).size).toBe(names.length);
    for (const { over, under } of check.guards)
      expect(names).toEqual(expect.arrayContaining([over.join(' '), under.join(' ')]));
  });
});
