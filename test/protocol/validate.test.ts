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
  type Rule,
  validated,
} from '../../src/protocol/validate.js';

const thrownBy = (call: () => unknown): TradeFeedError => {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TradeFeedError);
    return error as TradeFeedError;
  }
  throw new Error('nothing was thrown');
};

const noNumber = [NaN, '1', null, undefined, true];
const rules: readonly { rule: Rule; allowed: string; yes: readonly unknown[]; no: readonly unknown[] }[] = [
  {
    rule: durationMs,
    allowed: 'a number of ms, 0 or more',
    yes: [0, 0.5, 1, Infinity],
    no: [...noNumber, -1, -Infinity, 1n],
  },
  { rule: positiveMs, allowed: 'a number of ms above 0', yes: [0.5, 1, Infinity], no: [...noNumber, 0, -0, -1] },
  {
    rule: positiveCount,
    allowed: 'a whole number, 1 or more',
    yes: [1, 2 ** 53 - 1],
    no: [...noNumber, 0, 1.5, -1, Infinity],
  },
  {
    rule: aCount(0),
    allowed: 'a whole number, 0 or more, or Infinity',
    yes: [0, 1, 2 ** 53, Infinity],
    no: [...noNumber, -1, 0.5, -Infinity],
  },
  {
    rule: aCount(1),
    allowed: 'a whole number, 1 or more, or Infinity',
    yes: [1, 2, Infinity],
    no: [...noNumber, 0, -1, 1.5],
  },
  { rule: aFunction, allowed: 'a function', yes: [() => 1, class {}], no: [{}, null, undefined, 'x'] },
  {
    rule: objectWith('go', 'a thing that goes'),
    allowed: 'a thing that goes',
    yes: [{ go: () => 1 }, Object.create({ go: () => 1 }) as unknown],
    no: [{}, { go: 1 }, null, undefined, 'go', Object.assign(() => 1, { go: () => 1 })],
  },
  { rule: anObject, allowed: 'an object', yes: [{}, new Date()], no: [[], null, undefined, 'x', 1, () => 1] },
  { rule: aBoolean, allowed: 'true or false', yes: [true, false], no: [null, undefined, 'true', 0, 1] },
  {
    rule: aScheduler,
    allowed: 'an RxJS scheduler',
    yes: [asyncScheduler, { schedule: () => 1 }],
    no: [{}, { '': () => 1 }, { schedule: 1 }, null, undefined],
  },
  { rule: oneOf('a', 'b'), allowed: "'a' or 'b'", yes: ['a', 'b'], no: ['', 'c', 'A', ['a'], null, undefined, 0] },
];

it.each(rules)('the rule "$allowed" accepts $yes and refuses $no', ({ rule, allowed, yes, no }) => {
  expect(rule.allowed).toBe(allowed);
  for (const value of yes) expect([value, rule.is(value)]).toEqual([value, true]);
  for (const value of no) expect([value, rule.is(value)]).toEqual([value, false]);
});

it('clampMs returns a valid delay unchanged, and limits a longer one to the longest timer', () => {
  expect([0, 1, MAX_TIMER_MS, MAX_TIMER_MS + 1, 1e300, Infinity].map(clampMs)).toEqual([
    ...[0, 1, 2_147_483_647, 2_147_483_647, 2_147_483_647, 2_147_483_647],
  ]);
});

describe('invalidOption', () => {
  it.each([-1, 0, NaN, true])('names the option, the allowed values, and %p', (value) => {
    const error = invalidOption('x', 'a b', value);
    expect(error).toMatchObject({ code: 'invalid-options', verdict: 'stop', stage: 'ticket' });
    expect(error.message).toContain(`Invalid option: \`x\` must be a b, got ${value}.`);
  });

  it.each(['sk-planted', null, undefined, { key: 'sk-planted' }, ['sk-planted']])('does not show %p', (value) => {
    expect(invalidOption('x', 'a b', value).message).toContain('`x` must be a b.');
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

  it.each(['wiat', 'toString', 'constructor'])('names the unknown option %s, and the known ones', (name) => {
    const { code, message } = thrownBy(() => check({ [name]: 5 }, 'in.'));
    expect(code).toBe('invalid-options');
    expect(message).toContain(`\`in.${name}\` must be left out: the options are wait, word`);
    expect(check({ [name]: undefined })).toEqual({});
  });

  it.each([null, undefined, 5, 'text', true, () => 1])('rejects %p, which is not an object', (value) => {
    expect(thrownBy(() => check(value)).message).toContain('`options` must be an object.');
    expect(thrownBy(() => check(value, 'backoff.')).message).toContain('`backoff` must be an object.');
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
    [{ word: 'a' }, '`wait` must be a number of ms, 0 or more.'],
    [{ wait: -1, word: 'b' }, '`wait` must be a number of ms, 0 or more, got -1.'],
    [{ wait: 1, word: 'b' }, "`word` must be 'a', got 'b'."],
  ])('names the first missing or wrong value in %j', (values, words) => {
    const { code, message } = thrownBy(() => {
      checkRequired(values, rules);
    });
    expect(code).toBe('invalid-options');
    expect(message).toContain(words);
  });
});
