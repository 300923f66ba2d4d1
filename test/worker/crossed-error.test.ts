import { describe, expect, it } from '@jest/globals';
import { createTradeFeedError } from '../../src/index.js';
import { crossed, crossing, type Keeping } from '../../src/worker/crossed-error.js';
import { keptValues } from '../../src/worker/kept-values.js';
import { standIns } from '../../src/worker/stand-ins.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';

const across = (thrown: unknown, from: Keeping, to: Keeping): unknown =>
  crossed(structuredClone(crossing(thrown, from)), to);

describe('an error that changes threads', () => {
  it('stays the failure that it was, with its cause, the failure before and the stack', () => {
    const cause = Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' });
    const previous = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown', uptimeMs: 7 });
    const failure = copyFailure(
      createTradeFeedError({ stage: 'ticket', status: 429, retryAfterMs: 5, endedAt: 1, cause }),
      {
        previous,
      },
    );
    const arrived = across(failure, standIns, keptValues()) as typeof failure;
    expect(arrived).toBeInstanceOf(Error);
    expect(arrived.toJSON()).toEqual(failure.toJSON());
    expect(arrived.stack).toBe(failure.stack);
    expect(arrived.cause).toEqual(cause);
    expect(arrived.cause).toMatchObject({ code: 'EHOSTUNREACH', stack: cause.stack });
    expect(arrived.previous?.toJSON()).toEqual(previous.toJSON());
  });

  it.each([
    ['an error of another kind', new RangeError('too far'), { name: 'RangeError', message: 'too far' }],
    ['a text', 'a word', { message: 'a word' }],
    ['nothing', undefined, { message: 'undefined' }],
    ['what cannot be cloned', { message: 'm', code: 1, run: () => 1 }, { message: 'm' }],
  ])('becomes an error of the same words: %s', (_what, thrown, expected) => {
    const arrived = across(thrown, standIns, keptValues());
    expect(arrived).toBeInstanceOf(Error);
    expect(arrived).toMatchObject(expected);
  });

  it.each([new Error('mine'), 'mine', undefined, { mine: true }, () => 1])(
    'is the very same when it comes back: %p',
    (thrown) => {
      const kept = keptValues();
      const there = across(thrown, kept, standIns);
      expect(there instanceof Error).toBe(thrown instanceof Error);
      if (thrown instanceof Error) expect(there).toMatchObject({ message: 'mine' });
      const failure = createTradeFeedError({ stage: 'ticket', code: 'api-key-unavailable', cause: there });
      expect(across(there, standIns, kept)).toBe(thrown);
      expect((across(failure, standIns, kept) as Error).cause).toBe(thrown);
    },
  );

  it('is kept as long as a failure can have it as its cause, and not for ever', () => {
    const kept = keptValues();
    const there = Array.from({ length: 100 }, (_, n) => across(new Error(`${n}`), kept, standIns));
    const back = there.map((each) => across(each, standIns, kept));
    expect(back.map((each) => (each as Error).message)).toEqual(there.map((_, n) => `${n}`));
    expect(across(there[99], standIns, kept)).toBe(back[99]);
    expect(across(there[0], standIns, kept)).not.toBe(back[0]);
  });
});
