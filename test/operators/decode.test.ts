import { describe, expect, it, jest } from '@jest/globals';
import { type Either, left, right } from 'fp-ts/lib/Either.js';
import { from, map, Observable, of, Subject, throwError } from 'rxjs';
import { decodeEither } from '../../src/operators/decode-either.js';
import { type DecodeOptions, decodeWith } from '../../src/operators/decode-with.js';
import type { Codec } from '../../src/operators/decode/codec.js';
import { DecodeError, type DecodeFailure } from '../../src/operators/decode/decode-failure.js';
import { Decoded } from '../../src/operators/items/item.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { libraries, listOf } from './decode/schemas.js';
import { binaryFrame, disconnected, frameOf, gapOf, marbles, opened } from './stream.js';
import * as t from 'io-ts';

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
  it('emits each value with its frame, as soon as the frame arrives', () => {
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

  it('calls onInvalid with the frame and the path of the problem, and continues', () => {
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
});

describe('decodeEither', () => {
  it('emits an Either for every frame and every other event unchanged, in order', () => {
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
});

// These rules hold for the codecs of all libraries, with every `onInvalid`.

type Operator = (codec: Codec<unknown>) => (source$: Observable<AnyFrame>) => Observable<unknown>;

const valueOf = map(({ value }: Decoded<unknown, AnyFrame>) => value);
const withOptions =
  (options: DecodeOptions): Operator =>
  (codec) =>
  (source$) =>
    source$.pipe(decodeWith(codec, options), valueOf);

/** Maps each frame to its value, or to its messages if it's invalid. */
const either: Operator = (codec) => (source$) =>
  source$.pipe(
    decodeEither(codec),
    map((each: Either<DecodeFailure, Decoded<unknown, AnyFrame>>) =>
      each._tag === 'Right' ? each.right.value : each.left.issues,
    ),
  );

const operators: readonly [string, Operator][] = [
  ["decodeWith, 'drop'", withOptions({})],
  ["decodeWith, 'error'", withOptions({ onInvalid: 'error' })],
  ['decodeWith, a function', withOptions({ onInvalid: () => expect('onInvalid').toBe('not called') })],
  ['decodeEither', either],
];

const texts = (...all: readonly string[]): readonly AnyFrame[] => all.map((text) => frameOf(text));

/** Emits frames one by one. Returns all outputs; an error comes last. */
const outcomeOf = (frames: readonly AnyFrame[], operator: (source$: Observable<AnyFrame>) => Observable<unknown>) => {
  const source$ = new Subject<AnyFrame>();
  const seen: unknown[] = [];
  const errors: unknown[] = [];
  operator(source$).subscribe({ next: (value) => seen.push(value), error: (error) => errors.push(error) });
  for (const frame of frames) source$.next(frame);
  return { seen, errors, isObserved: source$.observed };
};

const failingAt = (zero: number, error: unknown) => (n: number) => {
  if (n === zero) throw error;
  return n;
};

describe.each(libraries)('an error of a function in a codec: $name', ({ checked, changed }) => {
  const three = texts('{"n":1}', '{"n":0}', '{"n":2}');

  it.each(operators)('ends the stream with that error instead of emitting the frame: %s', (_name, operator) => {
    const bug = new Error('a bug');
    for (const codec of [checked((n) => failingAt(0, bug)(n) > 0), changed(failingAt(0, bug))]) {
      const { seen, errors, isObserved } = outcomeOf(three, operator(codec));
      expect(seen).toEqual([{ n: 1 }]);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toBe(bug);
      expect(isObserved).toBe(false);
    }
  });

  it('ends the stream with the overflow if the function recurses without end', () => {
    const endless = (n: number): number => (n === 0 ? endless(n) + 1 : n);
    const { errors } = outcomeOf(three, withOptions({})(changed(endless)));
    expect(errors).toEqual([expect.objectContaining({ message: 'Maximum call stack size exceeded' })]);
    expect(errors[0]).not.toBeInstanceOf(DecodeError);
  });
});

// A few codecs take a quarter of a second for such a document.
jest.setTimeout(120_000);

const issue = { path: '', message: 'nested more than 100 levels deep: the codec ran out of stack' };
const small = '{"n":1,"next":null}';

describe.each(libraries)('a document that is nested too deeply: $name', ({ list }) => {
  const deep = listOf(20_000);
  const frames = texts(deep, small, listOf(20_000, '"x"'), small);
  const value = { n: 1, next: null };

  it('is an invalid frame, even if it comes first', () => {
    const { seen, isObserved } = outcomeOf(frames, either(list()));
    expect([seen, isObserved]).toEqual([[[issue], value, [issue], value], true]);
  });

  it('is decoded if it has only 100 levels', () => {
    const { seen } = outcomeOf(texts(listOf(100), listOf(100, '"x"')), either(list()));
    expect(seen).toEqual([JSON.parse(listOf(100)), expect.not.arrayContaining([issue])]);
  });
});

it('names the document in the text of a DecodeError whose codec gave no reason', () => {
  const failure = {
    type: 'decode-failure',
    feed: 'market',
    connection: 1,
    receivedAt: 1,
    bytes: 2,
    issues: [],
  } as const;
  expect(new DecodeError(failure).message).toContain("(2 bytes) doesn't match the codec: the document: refused.");
});
