import { describe, expect, it } from '@jest/globals';
import { left, right } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { of, throwError } from 'rxjs';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { Decoded } from '../../src/operators/items/decoded.js';
import { decodeEither } from '../../src/operators/decode-either.js';
import { disconnected, frameOf, gapOf, marbles, opened } from './stream.js';

const Count = t.type({ n: t.number });

describe('decodeEither', () => {
  it('emits an Either for every frame, and emits every other event unchanged, in order', () => {
    const a = frameOf('{"n":1}');
    const x = frameOf('{"n":"x"}', 7, 3);
    const events = { o: opened(1), d: disconnected(2), g: gapOf(2, 3), a, x };
    const failure = { type: 'decode-failure', feed: 'market', connection: 3, receivedAt: 7, bytes: 9 };
    const issues = [{ path: '/n', message: 'expected number' }];
    const values = { ...events, A: right(new Decoded({ n: 1 }, a)), X: left({ ...failure, issues }) };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-o-a-x-d-(og)-a-|', events);
      const sub = '         ^---------------!';
      const expected = '    -o-A-X-d-(og)-A-|';
      expectObservable(source$.pipe(decodeEither(Count))).toBe(expected, values);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it('errors with the source, and when the codec throws', () => {
    const bug = new Error('a bug');
    const errors: unknown[] = [];
    const throwing = new t.Type<number>(
      'Odd',
      t.number.is,
      () => {
        throw bug;
      },
      t.identity,
    );
    of(frameOf('1'))
      .pipe(decodeEither(throwing))
      .subscribe({ error: (e) => errors.push(e) });
    throwError(() => bug)
      .pipe(decodeEither(Count))
      .subscribe({ error: (e) => errors.push(e) });
    expect(errors).toEqual([bug, bug]);
  });

  it.each<[string, () => unknown, string]>([
    ['no codec', () => decodeEither({} as never), '`codec` must be'],
    ['no options', () => decodeEither(Count, null as never), '`options` must be an object'],
    [
      'a `compile` that is no boolean',
      () => decodeEither(Count, { compile: 'no' as never }),
      '`compile` must be true or false',
    ],
    [
      'an option of decodeWith alone',
      () => decodeEither(Count, { onInvalid: 'drop' } as never),
      '`onInvalid` must be left out: the options are compile',
    ],
  ])('refuses %s at once', (_name, call, message) => {
    expect(call).toThrow(TradeFeedError);
    expect(call).toThrow(message);
  });
});
