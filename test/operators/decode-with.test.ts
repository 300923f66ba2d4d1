import { describe, expect, it, jest } from '@jest/globals';
import * as t from 'io-ts';
import { from, type Observable, of, Subject, toArray } from 'rxjs';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { Decoded } from '../../src/operators/items/decoded.js';
import { DecodeError, type DecodeFailure } from '../../src/operators/decode/decode-failure.js';
import { decodeWith, type DecodeOptions } from '../../src/operators/decode-with.js';
import { binaryFrame, disconnected, frameOf, gapOf, marbles, opened } from './stream.js';

const Count = t.type({ n: t.number });

const a = frameOf('{"n":1}', 5, 2);
const b = frameOf('{"n":2}');
const x = frameOf('{"n":"x"}', 7, 3);
const y = frameOf('{"n":');
const z = binaryFrame(1, 2);
const frames = { a, b, x, y, z };
const decoded = { A: new Decoded({ n: 1 }, a), B: new Decoded({ n: 2 }, b) };

const run = (source$: Observable<unknown>, options?: DecodeOptions) => {
  const values: unknown[] = [];
  let error: unknown;
  source$
    .pipe(decodeWith(Count, options))
    .subscribe({ next: (v) => values.push(v), error: (e: unknown) => (error = e) });
  return { values, error };
};

describe('decodeWith', () => {
  it('emits the value with its frame, at the time of the frame', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-a-(bb)-|', frames);
      const sub = '         ^-------!';
      const expected = '    -A-(BB)-|';
      expectObservable(source$.pipe(decodeWith(Count))).toBe(expected, decoded);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
    const { values } = run(of(a));
    expect(values[0]).toBeInstanceOf(Decoded);
    expect((values[0] as Decoded<unknown>).frame).toBe(a);
  });

  it('emits every other event unchanged, in order', () => {
    const events = { ...frames, ...decoded, o: opened(1), d: disconnected(2), g: gapOf(2, 3) };
    marbles(({ cold, expectObservable }) => {
      const source$ = cold('-o-a-d-(og)-x-b-|', events);
      const expected = '    -o-A-d-(og)---B-|';
      expectObservable(source$.pipe(decodeWith(Count))).toBe(expected, events);
    });
  });

  it('drops invalid frames by default, and continues', () => {
    marbles(({ cold, expectObservable }) => {
      const source$ = cold('-x-y-z-a-#', frames);
      const expected = '    -------A-#';
      expectObservable(source$.pipe(decodeWith(Count))).toBe(expected, decoded);
      expectObservable(source$.pipe(decodeWith(Count, { onInvalid: 'drop' }))).toBe(expected, decoded);
    });
  });

  it('calls a function with the frame and the path of the problem, and continues', () => {
    const onInvalid = jest.fn<(failure: DecodeFailure) => void>();
    expect(run(from([x, a, y, z]), { onInvalid })).toEqual({ values: [decoded.A], error: undefined });
    expect(onInvalid.mock.calls).toEqual([
      [
        {
          type: 'decode-failure',
          feed: 'market',
          connection: 3,
          receivedAt: 7,
          bytes: 9,
          issues: [{ path: '/n', message: 'expected number' }],
        },
      ],
      [expect.objectContaining({ issues: [{ path: '', message: expect.stringMatching(/^invalid JSON/) }] })],
      [expect.objectContaining({ bytes: 2, issues: [{ path: '', message: 'binary frame; expected JSON text' }] })],
    ]);
  });

  it("errors at the first invalid frame with onInvalid 'error', and unsubscribes from the source", () => {
    const source$ = new Subject<typeof a>();
    const seen: unknown[] = [];
    source$
      .pipe(decodeWith(Count, { onInvalid: 'error' }))
      .subscribe({ next: (v) => seen.push(v), error: (e) => seen.push(e) });
    for (const frame of [a, x, b]) source$.next(frame);
    expect(seen).toEqual([decoded.A, expect.any(DecodeError)]);
    expect((seen[1] as DecodeError).failure.issues[0]?.path).toBe('/n');
    expect(source$.observed).toBe(false);
  });

  it('errors when onInvalid or the codec throws', () => {
    const bug = new Error('a bug');
    const throwing = (): never => {
      throw bug;
    };
    expect(run(of(x), { onInvalid: throwing }).error).toBe(bug);
    const Odd = new t.Type<number>('Odd', throwing as unknown as t.Is<number>, throwing, t.identity);
    let error: unknown;
    of(a)
      .pipe(decodeWith(Odd))
      .subscribe({ error: (e: unknown) => (error = e) });
    expect(error).toBe(bug);
  });

  it('does not collect the issues when no function reads them', () => {
    const read = jest.fn();
    const issue = {
      get message() {
        read();
        return 'no';
      },
    };
    const schema = { '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [issue] }) } } as const;
    of(a, b).pipe(decodeWith(schema), toArray()).subscribe();
    expect(read).not.toHaveBeenCalled();
    of(a, b)
      .pipe(decodeWith(schema, { onInvalid: () => undefined }), toArray())
      .subscribe();
    expect(read).toHaveBeenCalled();
  });

  it('keeps nothing between subscriptions', () => {
    const frames$ = of(x, a).pipe(decodeWith(Count));
    for (let n = 0; n < 2; n += 1) {
      const seen: unknown[] = [];
      frames$.subscribe((v) => seen.push(v));
      expect(seen).toEqual([decoded.A]);
    }
  });

  it.each<[string, () => unknown, string]>([
    ['no codec', () => decodeWith(undefined as never), '`codec` must be an io-ts codec or a Standard Schema'],
    ['an object that is no codec', () => decodeWith({ is: 1, decode: 2 } as never), '`codec` must be'],
    ['a decoder without a guard', () => decodeWith({ decode: () => 1 } as never), '`codec` must be'],
    ['a guard without a decoder', () => decodeWith({ is: () => true } as never), '`codec` must be'],
    [
      'an answer it does not know',
      () => decodeWith(Count, { onInvalid: 'ignore' as never }),
      "`onInvalid` must be 'drop' or 'error' or a function",
    ],
    [
      'a `compile` that is no boolean',
      () => decodeWith(Count, { compile: 1 as never }),
      '`compile` must be true or false',
    ],
    ['an unknown option', () => decodeWith(Count, { onError: 'drop' } as never), '`onError` must be left out'],
  ])('refuses %s at once', (_name, call, message) => {
    expect(call).toThrow(TradeFeedError);
    expect(call).toThrow(message);
  });
});
