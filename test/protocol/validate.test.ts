import { describe, expect, it } from '@jest/globals';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import {
  checkRequired,
  clampMs,
  durationMs,
  invalidOption,
  MAX_TIMER_MS,
  oneOf,
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

it('clampMs returns a valid delay unchanged, and shortens any other to the longest that timers accept', () => {
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

  it.each(['sk-planted', null, undefined, { key: 'sk-planted' }, ['sk-planted']])("doesn't show %p", (value) => {
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

  it('returns a copy without undefined values, and leaves the original alone', () => {
    const value = Object.freeze({ wait: 5, word: undefined });
    expect(Object.entries(check(value))).toEqual([['wait', 5]]);
    expect(check(value)).not.toBe(value);
  });

  it('names the wrong option, after the prefix', () => {
    expect(thrownBy(() => check({ wait: -1 })).message).toContain('`wait` must be a number of ms, 0 or more, got -1');
    expect(thrownBy(() => check({ wait: -1 }, 'in.')).message).toContain('`in.wait` must be');
  });

  it.each(['wiat', 'toString', 'constructor'])('names the unknown option %s and lists the known ones', (name) => {
    const { code, message } = thrownBy(() => check({ [name]: 5 }, 'in.'));
    expect(code).toBe('invalid-options');
    expect(message).toContain(`\`in.${name}\` doesn't exist: the options are wait, word`);
    expect(check({ [name]: undefined })).toEqual({});
  });

  it.each([null, undefined, 5, 'text', true, () => 1])('rejects %p, because it is not an object', (value) => {
    expect(thrownBy(() => check(value)).message).toContain('`options` must be an object.');
    expect(thrownBy(() => check(value, 'backoff.')).message).toContain('`backoff` must be an object.');
  });
});

describe('checkRequired', () => {
  const rules = { wait: durationMs, word: oneOf('a') };

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
