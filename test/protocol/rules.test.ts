import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { asyncScheduler } from 'rxjs';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import {
  aBoolean,
  aCount,
  aFunction,
  anObject,
  aScheduler,
  checkRequired,
  clampMs,
  durationMs,
  invalidOption,
  MAX_TIMER_MS,
  objectWith,
  oneOf,
  positiveCount,
  positiveMs,
  validated,
} from '../../src/protocol/rules.js';

const thrownBy = (call: () => unknown): TradeFeedError => {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TradeFeedError);
    return error as TradeFeedError;
  }
  throw new Error('nothing was thrown');
};

const holds = [
  {
    name: 'durationMs',
    rule: durationMs,
    yes: [0, 0.5, 1, Infinity],
    no: [-1, -Infinity, NaN, '1', null, undefined, 1n],
  },
  {
    name: 'positiveCount',
    rule: positiveCount,
    yes: [1, 2 ** 53 - 1],
    no: [0, 1.5, -1, Infinity, NaN, '1', null, undefined],
  },
  { name: 'aCount from 0', rule: aCount(0), yes: [0, 1, 2 ** 53, Infinity], no: [-1, 0.5, -Infinity, NaN, '1', null] },
  { name: 'aCount from 1', rule: aCount(1), yes: [1, 2, Infinity], no: [0, -1, 1.5, NaN, true, undefined] },
  { name: 'positiveMs', rule: positiveMs, yes: [0.5, 1, Infinity], no: [0, -0, -1, NaN, '1', null, undefined, true] },
  { name: 'aFunction', rule: aFunction, yes: [() => 1, class {}], no: [{}, null, undefined, 'x'] },
  {
    name: 'objectWith',
    rule: objectWith('go', 'a thing that goes'),
    yes: [{ go: () => 1 }, Object.create({ go: () => 1 }) as unknown],
    no: [{}, { go: 1 }, null, undefined, 'go', Object.assign(() => 1, { go: () => 1 })],
  },
  { name: 'anObject', rule: anObject, yes: [{}, [], new Date()], no: [null, undefined, 'x', 1, () => 1] },
  { name: 'aBoolean', rule: aBoolean, yes: [true, false], no: [null, undefined, 'true', 0, 1] },
  {
    name: 'aScheduler',
    rule: aScheduler,
    yes: [asyncScheduler, { schedule: () => 1 }],
    no: [{}, { '': () => 1 }, { schedule: 1 }, null, undefined],
  },
  { name: 'oneOf', rule: oneOf('a', 'b'), yes: ['a', 'b'], no: ['', 'c', 'A', ['a'], null, undefined, 0] },
] as const;

describe.each(holds)('$name', ({ rule, yes, no }) => {
  it.each(yes.map((value) => [value]))('accepts %p', (value) => {
    expect(rule.is(value)).toBe(true);
  });

  it.each(no.map((value) => [value]))('refuses %p', (value) => {
    expect(rule.is(value)).toBe(false);
  });
});

describe('the description of a rule', () => {
  it('says what is allowed', () => {
    const words = {
      'a number of ms, 0 or more': durationMs,
      'a number of ms above 0': positiveMs,
      'a whole number, 1 or more': positiveCount,
      'a whole number, 3 or more, or Infinity': aCount(3),
      'an object': anObject,
      'true or false': aBoolean,
      'a function': aFunction,
      'a runner': objectWith('run', 'a runner'),
      'an RxJS scheduler': aScheduler,
      "'a' or 'b'": oneOf('a', 'b'),
    };
    expect(Object.values(words).map((rule) => rule.allowed)).toEqual(Object.keys(words));
  });
});

describe('clampMs', () => {
  it('returns a valid delay unchanged, and limits a longer one', () => {
    expect(MAX_TIMER_MS).toBe(2_147_483_647);
    expect([0, 1, 2_147_483_647, 2_147_483_648, 1e300, Infinity].map(clampMs)).toEqual([
      0, 1, 2_147_483_647, 2_147_483_647, 2_147_483_647, 2_147_483_647,
    ]);
  });
});

describe('invalidOption', () => {
  it('names the option, the allowed values, and a wrong number or boolean', () => {
    expect(invalidOption('x', 'a b', -1).message).toContain('`x` must be a b, got -1)');
    expect(invalidOption('x', 'a b', 0).message).toContain('`x` must be a b, got 0)');
    expect(invalidOption('x', 'a b', NaN).message).toContain('`x` must be a b, got NaN)');
    expect(invalidOption('x', 'a b', true).message).toContain('`x` must be a b, got true)');
  });

  it.each(['sk-planted', null, undefined, { key: 'sk-planted' }, ['sk-planted']])('does not show %p', (value) => {
    expect(invalidOption('x', 'a b', value).message).toContain('`x` must be a b)');
  });

  it('is a failure that stops', () => {
    expect(invalidOption('x', 'a b')).toMatchObject({ code: 'invalid-options', verdict: 'stop', stage: 'ticket' });
  });
});

describe('validated', () => {
  const rules = { wait: durationMs, word: oneOf('a') };
  interface Options {
    wait?: number | undefined;
    word?: string | undefined;
  }
  const check = (options: unknown, prefix?: string) => validated<Options>(options as Options, rules, prefix);

  it('returns a copy without undefined values, and does not change the original', () => {
    const value = Object.freeze({ wait: 5, word: undefined });
    expect(Object.entries(check(value))).toEqual([['wait', 5]]);
    expect(check(value)).not.toBe(value);
  });

  it('names the wrong option, after the prefix', () => {
    expect(thrownBy(() => check({ wait: -1 })).message).toContain('`wait` must be a number of ms, 0 or more, got -1');
    expect(thrownBy(() => check({ wait: -1 }, 'in.')).message).toContain('`in.wait` must be');
  });

  it('names an unknown option, and the known ones', () => {
    const { code, message } = thrownBy(() => check({ wiat: 5 }, 'in.'));
    expect(code).toBe('invalid-options');
    expect(message).toContain('`in.wiat` must be left out: the options are wait, word');
  });

  it.each(['toString', 'constructor', 'hasOwnProperty'])(
    'does not treat %s, which every object inherits, as a rule',
    (name) => {
      expect(thrownBy(() => check({ [name]: 5 })).message).toContain(`\`${name}\` must be left out`);
    },
  );

  it('ignores an unknown option with the value undefined', () => {
    expect(check({ wiat: undefined })).toEqual({});
  });

  it.each([null, undefined, 5, 'text', true, () => 1])('rejects %p, which is not an object', (value) => {
    expect(thrownBy(() => check(value)).message).toContain('`options` must be an object)');
    expect(thrownBy(() => check(value, 'backoff.')).message).toContain('`backoff` must be an object)');
  });

  it('throws a TradeFeedError or nothing, for any value', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        try {
          check(value);
        } catch (error) {
          expect((error as TradeFeedError).code).toBe('invalid-options');
        }
      }),
    );
  });
});

describe('checkRequired', () => {
  const rules = { wait: durationMs, word: oneOf('a') };

  it('accepts valid values, and ignores the others', () => {
    expect(() => {
      checkRequired({ wait: 0, word: 'a', more: 5 }, rules);
    }).not.toThrow();
  });

  it.each<[object, string]>([
    [{ word: 'a' }, '`wait` must be a number of ms, 0 or more)'],
    [{ wait: -1, word: 'b' }, '`wait` must be a number of ms, 0 or more, got -1)'],
    [{ wait: 1, word: 'b' }, "`word` must be 'a')"],
  ])('names the first missing or wrong value in %j', (values, words) => {
    const { code, message } = thrownBy(() => {
      checkRequired(values, rules);
    });
    expect(code).toBe('invalid-options');
    expect(message).toContain(words);
  });
});
