import { describe, expect, it } from '@jest/globals';
import { createTradeFeedError } from '../../src/index.js';
import { fromCloneable, toCloneable } from '../../src/worker/cloneable-error.js';
import { placeholders, storedValues, type ThrownValues } from '../../src/worker/thrown-values.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';

const across = (thrown: unknown, from: ThrownValues, to: ThrownValues): unknown =>
  fromCloneable(structuredClone(toCloneable(thrown, from)), to);

describe('an error that is sent to another thread', () => {
  it('keeps all fields of a failure, its cause, its previous failure and its stack', () => {
    const cause = Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' });
    const previous = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown', uptimeMs: 7 });
    const failure = copyFailure(
      createTradeFeedError({ stage: 'ticket', status: 429, retryAfterMs: 5, endedAt: 1, cause }),
      {
        previous,
      },
    );
    const arrived = across(failure, placeholders, storedValues()) as typeof failure;
    expect(arrived).toBeInstanceOf(Error);
    expect(arrived.toJSON()).toEqual(failure.toJSON());
    expect(arrived.stack).toBe(failure.stack);
    expect(arrived.cause).toEqual(cause);
    expect(arrived.cause).toMatchObject({ code: 'EHOSTUNREACH', stack: cause.stack });
    expect(arrived.previous?.toJSON()).toEqual(previous.toJSON());
  });

  it.each([
    ['an error of another class', new RangeError('too far'), { name: 'RangeError', message: 'too far' }],
    ['a string', 'a word', { message: 'a word' }],
    ['nothing', undefined, { message: 'undefined' }],
    ['a value that cannot be cloned', { message: 'm', code: 1, run: () => 1 }, { message: 'm' }],
  ])('becomes an error with the same message: %s', (_what, thrown, expected) => {
    const arrived = across(thrown, placeholders, storedValues());
    expect(arrived).toBeInstanceOf(Error);
    expect(arrived).toMatchObject(expected);
  });

  it.each([new Error('mine'), 'mine', undefined, { mine: true }, () => 1])(
    'is the same object when it returns: %p',
    (thrown) => {
      const values = storedValues();
      const there = across(thrown, values, placeholders);
      expect(there instanceof Error).toBe(thrown instanceof Error);
      if (thrown instanceof Error) expect(there).toMatchObject({ message: 'mine' });
      const failure = createTradeFeedError({ stage: 'ticket', code: 'api-key-unavailable', cause: there });
      expect(across(there, placeholders, values)).toBe(thrown);
      expect((across(failure, placeholders, values) as Error).cause).toBe(thrown);
    },
  );

  it('is stored while a failure can have it as its cause, and not forever', () => {
    const values = storedValues();
    const there = Array.from({ length: 100 }, (_, n) => across(new Error(`${n}`), values, placeholders));
    const back = there.map((each) => across(each, placeholders, values));
    expect(back.map((each) => (each as Error).message)).toEqual(there.map((_, n) => `${n}`));
    expect(across(there[99], placeholders, values)).toBe(back[99]);
    expect(across(there[0], placeholders, values)).not.toBe(back[0]);
  });
});
