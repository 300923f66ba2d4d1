import { describe, expect, it, jest } from '@jest/globals';
import { inspect, isDeepStrictEqual } from 'node:util';
import { type } from 'arktype';
import fc from 'fast-check';
import { type Either, isRight, left, right } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { type Observable, Subject, map, of } from 'rxjs';
import * as v from 'valibot';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';
import { decodeEither } from '../../src/operators/decode-either.js';
import { type DecodeOptions, decodeWith } from '../../src/operators/decode-with.js';
import { type Codec, documentReader, standardCheck } from '../../src/operators/decode/codec.js';
import {
  DecodeError,
  type DecodeFailure,
  type DecodeIssue,
  Refused,
  decodeFailure,
} from '../../src/operators/decode/decode-failure.js';
import { ioTsCheck } from '../../src/operators/decode/io-ts-check.js';
import { Decoded } from '../../src/operators/items/item.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { cases as caseCount } from '../support/cases.js';
import { cases, documentsFor } from './decode/random-codecs.js';
import { libraries, listOf } from './decode/schemas.js';
import { binaryFrame, disconnected, emittedBy, frameOf, gapOf, marbles, opened } from './stream.js';

const Count = t.type({ n: t.number });

const a = frameOf('{"n":1}', 5, 2);
const b = frameOf('{"n":2}');
const x = frameOf('{"n":"x"}', 7, 3);
const events = { a, b, x, o: opened(1), d: disconnected(2), g: gapOf(2, 3) };
const decoded = { A: new Decoded({ n: 1 }, a), B: new Decoded({ n: 2 }, b) };
const failure = {
  ...{ type: 'decode-failure', feed: 'market', connection: 3, receivedAt: 7, bytes: 9 },
  issues: [{ path: '/n', message: 'expected number' }],
};

describe('decodeWith', () => {
  it('emits each value with its frame and every other event unchanged, in order, and drops invalid frames', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-o-a-d-(og)-x-(bb)-|', events);
      const sub = '         ^------------------!';
      const expected = '    -o-A-d-(og)---(BB)-|';
      expectObservable(source$.pipe(decodeWith(Count))).toBe(expected, { ...events, ...decoded });
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
    expect((emittedBy(of(a).pipe(decodeWith(Count)))[0] as Decoded<unknown>).frame).toBe(a);
  });

  it('calls onInvalid with the frame and the path of the problem, and continues', () => {
    const onInvalid = jest.fn<(failure: DecodeFailure) => void>();
    const source$ = of(x, a, frameOf('{"n":'), binaryFrame(1, 2));
    expect(emittedBy(source$.pipe(decodeWith(Count, { onInvalid })))).toEqual([decoded.A]);
    expect(onInvalid.mock.calls).toEqual([
      [failure],
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
    expect((seen[1] as DecodeError).failure).toEqual(failure);
    expect(source$.observed).toBe(false);
  });
});

it('decodeEither emits an Either for every frame and every other event unchanged, in order', () => {
  const values = { ...events, A: right(decoded.A), X: left(failure) };
  marbles(({ cold, expectObservable, expectSubscriptions }) => {
    const source$ = cold('-o-a-x-d-(og)-a-#', events);
    const sub = '         ^---------------!';
    const expected = '    -o-A-X-d-(og)-A-#';
    expectObservable(source$.pipe(decodeEither(Count))).toBe(expected, values);
    expectSubscriptions(source$.subscriptions).toBe(sub);
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

/** Node reports unhandled rejections after all microtasks, and jest fails the test that is running then. */
const untilReported = () => new Promise((resolve) => setImmediate(resolve));

const failingAt = (zero: number, error: unknown) => (n: number) => {
  if (n === zero) throw error;
  return n;
};

describe.each(libraries)('an error of a function in a codec: $name', ({ checked, changed }) => {
  const three = texts('{"n":1}', '{"n":0}', '{"n":2}');

  it.each(operators)('ends the stream at its frame, and no rejection is unhandled: %s', async (_, operator) => {
    const bug = new Error('a bug');
    for (const codec of [checked((n) => failingAt(0, bug)(n) > 0), changed(failingAt(0, bug))]) {
      const { seen, errors, isObserved } = outcomeOf(three, operator(codec));
      expect(seen).toEqual([{ n: 1 }]);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toBe(bug);
      expect(isObserved).toBe(false);
    }
    await untilReported();
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

const read = <A>(codec: Codec<A>, text: string): A | readonly DecodeIssue[] =>
  outcome(documentReader(codec)(frameOf(text)));

const outcome = <A>(result: A | Refused): A | readonly DecodeIssue[] =>
  result instanceof Refused ? result.issues() : result;

it('a codec of io-ts may refuse a document without naming a type', () => {
  const refusing = new t.Type<number, number, unknown>(
    'odd',
    t.number.is,
    () => t.failures([{ value: 1, context: [] }]),
    Number,
  );
  expect(read(refusing, '1')).toEqual([{ path: '', message: 'expected something else' }]);
});

// The same type of document in each of the four libraries.
const codecs: Readonly<Record<string, Codec<unknown>>> = {
  'io-ts': t.type({ batch: t.number, trades: t.array(t.type({ to: t.string, 'a/b~c': t.string })) }) as t.Mixed,
  zod: z.object({ batch: z.number(), trades: z.array(z.object({ to: z.string(), 'a/b~c': z.string() })) }),
  valibot: v.object({ batch: v.number(), trades: v.array(v.object({ to: v.string(), 'a/b~c': v.string() })) }),
  arktype: type({ batch: 'number', trades: type({ to: 'string', 'a/b~c': 'string' }).array() }),
};
const trade = { to: 'x', 'a/b~c': 'y' };
const good = { batch: 1, trades: [trade, { to: 'z', 'a/b~c': '' }] };

describe.each(Object.entries(codecs))('a schema of %s', (_name, codec) => {
  it.each<[string, unknown, string]>([
    ['deep inside', { ...good, trades: [trade, { to: 5, 'a/b~c': '' }] }, '/trades/1/to'],
    ['below a key that a pointer must escape', { ...good, trades: [{ to: '', 'a/b~c': 1 }] }, '/trades/0/a~1b~0c'],
    ['a missing property', { batch: 1 }, '/trades'],
    ['the whole document', 'text', ''],
  ])('reports the path of a problem: %s', (_place, document, path) => {
    const message = expect.stringMatching(/string|array|object|trades|type/i);
    expect(read(codec, JSON.stringify(document))).toEqual([{ path, message }]);
  });
});

it.each(['', '{', '{"n":}', 'nonsense', '"open'])('%j is invalid JSON, and the issue does not quote it', (text) => {
  const message = expect.stringMatching(/^invalid JSON( at position \d+)?$/);
  expect(read(t.unknown, text)).toEqual([{ path: '', message }]);
});

describe('a document that makes the codec run out of stack', () => {
  const overflow = (): never => {
    const endless = (): number => endless() + 1;
    throw new Error(String(endless()));
  };
  const nested = (levels: number): unknown => {
    let document: unknown = null;
    for (let n = 0; n < levels; n += 1) document = n % 2 ? [document] : { a: document };
    return document;
  };
  const wide = (values: number): unknown => ({ all: Array.from({ length: values - 2 }, () => 0) });

  /** Reads a document with a schema that runs a function in its check or in its issues. */
  const readWith = (run: () => unknown, document: unknown) => {
    const issue = Object.defineProperty({}, 'message', { get: run });
    const results: readonly unknown[] = [Object.defineProperty({}, 'issues', { get: run }), { issues: [issue] }];
    return results.map((result) => {
      const frame = frameOf('1');
      jest.spyOn(frame, 'json').mockReturnValue(document);
      const schema = { '~standard': { version: 1, vendor: 'test', validate: () => result } } as Codec<unknown>;
      return outcome(documentReader(schema)(frame));
    });
  };

  it.each([
    ['101 levels', nested(101), 'nested more than 100 levels deep'],
    ['a million levels', nested(1_000_000), 'nested more than 100 levels deep'],
    ['10,001 values', wide(10_001), 'more than 10000 values'],
  ])('is refused with %s, in the check and in its issues', (_name, document, excess) => {
    const issues = [{ path: '', message: `${excess}: the codec ran out of stack` }];
    expect(readWith(overflow, document)).toEqual([issues, issues]);
  });

  const fail = failingAt(0, new RangeError('Invalid array length'));
  it.each<[string, unknown, () => unknown, string]>([
    ['a recursion without end at 100 levels', nested(100), overflow, 'Maximum call stack'],
    ['a recursion without end at 10,000 values', wide(10_000), overflow, 'Maximum call stack'],
    ['a recursion without end at null', null, overflow, 'Maximum call stack'],
    ['any other error, however large the document is', nested(1_000), () => fail(0), 'Invalid array length'],
  ])('throws %s of a function of the user', (_what, document, run, message) => {
    expect(() => readWith(run, document)).toThrow(message);
  });
});

interface Tree {
  readonly value: number;
  readonly next: Tree | null;
}
const Tree: t.Type<Tree> = t.recursion('Tree', () => t.type({ value: t.number, next: t.union([Tree, t.null]) }));
const Pair = t.tuple([t.number, t.number]);

/** Codecs that return their input, so their guard is enough to accept a document. */
const plain: readonly (readonly [t.Mixed, unknown])[] = [
  ...([t.string, t.literal('a'), t.keyof({ a: null })] as t.Mixed[]).map((codec) => [codec, 'a'] as const),
  [t.array(t.number), [1]],
  [t.refinement(t.number, (n) => n > 0), 1],
  [Tree, { value: 1, next: { value: 2, next: null } }],
  [t.union([t.string, t.number]), 1],
  [t.tuple([t.number, t.string]), [1, 'a']],
  [t.type({ a: t.number }), { a: 1, b: 2 }],
  [t.record(t.string, t.number), { a: 1 }],
  // The last member, or one that no later member could accept, may change a document.
  [t.union([t.array(t.number), Pair]), [1, 2]],
  [t.union([Tree, t.type({ a: t.number })]), { a: 1 }],
  [t.union([Pair, t.null, t.literal(1)]), [1, 2]],
  [t.union([t.type({ a: t.number }), t.type({})]), {}],
];

const check = (codec: t.Mixed) => ioTsCheck(codec as t.Type<unknown>);

const issuesOf = (codec: t.Mixed, document: unknown): unknown => {
  const result = check(codec)(document);
  return result instanceof Refused ? result.issues() : [];
};

describe('ioTsCheck', () => {
  it('only calls `is` of codecs that return their input, and returns the document itself', () => {
    for (const [codec, document] of plain) {
      const checked = check(codec);
      const validate = jest.spyOn(codec, 'validate');
      expect([checked(document) === document, validate.mock.calls]).toEqual([true, []]);
      validate.mockRestore();
    }
  });

  it.each<[string, t.Mixed, unknown, unknown]>([
    ['a tuple that cuts', t.union([Pair, t.array(t.number)]), [1, 2, 3], [1, 2]],
    ['a type that adds a property', t.union([t.type({ a: t.undefined }), t.type({})]), {}, { a: undefined }],
  ])('gets the value of a union of %s from the decoder', (_name, codec, document, expected) => {
    expect(check(codec)(document)).toStrictEqual(expected);
  });

  it('reads the definition of a recursive type once, at the first document', () => {
    const definition = jest.fn((): t.Mixed => t.null);
    const checked = check(t.recursion('R', definition));
    expect(definition).not.toHaveBeenCalled();
    for (let n = 0; n < 3; n += 1) checked(null);
    expect(definition).toHaveBeenCalledTimes(1);
  });

  it('leaves the member numbers of unions and intersections out of the path', () => {
    const [one, two] = [t.type({ kind: t.literal('a'), n: t.number }), t.type({ kind: t.literal('b'), s: t.string })];
    const both = t.exact(t.intersection([t.type({ x: t.number }), t.type({ y: t.number })]));
    const codec = t.type({ list: t.array(t.union([one, two])), both });
    expect(issuesOf(codec, { list: [{ kind: 'a', n: 'x' }], both: { x: 1, y: 'y' } })).toEqual([
      { path: '/list/0/n', message: 'expected number' },
      { path: '/both/y', message: 'expected number' },
    ]);
    const branded = t.type({ v: t.refinement(t.union([t.string, t.number]), () => true) });
    expect(issuesOf(branded, { v: true })).toEqual([
      { path: '/v', message: 'expected string' },
      { path: '/v', message: 'expected number' },
    ]);
    expect(issuesOf(Tree, { value: 1, next: { value: 'x', next: null } })).toContainEqual({
      path: '/next/value',
      message: 'expected number',
    });
  });

  it('returns the message of a codec that has one', () => {
    const refuseOdd: t.Validate<unknown, number> = (u, c) => t.failure(u, c, 'expected an even number');
    const Even = new t.Type<number>('Even', t.number.is, refuseOdd, t.identity);
    expect(issuesOf(t.array(Even), [1])).toEqual([{ path: '/0', message: 'expected an even number' }]);
  });

  it('returns what the decoder returns, for random codecs and documents', () => {
    fc.assert(
      fc.property(
        cases.chain((one) =>
          fc.tuple(fc.constant(one.codec), fc.array(documentsFor(one), { minLength: 4, maxLength: 4 })),
        ),
        ([codec, documents]) => {
          for (const document of documents) {
            const result = codec.decode(document) as t.Validation<unknown>;
            const got = check(codec)(document);
            // The way io-ts copies a property `__proto__` gives each copy another prototype.
            const isRepeatable = isDeepStrictEqual(result, codec.decode(document));
            const isSame = isRight(result) ? isDeepStrictEqual(got, result.right) : got instanceof Refused;
            if (!isSame && isRepeatable) throw new Error(codec.name);
            if (isRight(result) && result.right === document && got !== document)
              throw new Error(`${codec.name}: not the very document`);
          }
        },
      ),
      { numRuns: caseCount(1_000) },
    );
  });
});

const later = () => Promise.resolve(true);

type Schema = Parameters<typeof standardCheck>[0];
const rejecting = (vendor: string): Schema => ({
  '~standard': { version: 1, vendor, validate: () => Promise.reject(new Error('late')) },
});

it.each<[string, Schema]>([
  ['zod, refine', z.string().refine(later)],
  ['zod, called by a function of another schema', z.string().transform((s) => z.string().refine(later).parse(s))],
  ['zod/mini', mini.string().check(mini.refine(later))],
  ['zod 3, transform', z3.string().transform(later)],
  ['valibot', v.pipeAsync(v.string(), v.checkAsync(later))],
  ['a schema without a library', rejecting('test')],
  ['a schema that claims to be of zod', rejecting('zod')],
])('an asynchronous schema is refused, and leaves no unhandled rejection: %s', async (_name, schema) => {
  const check = standardCheck(schema);
  expect(() => check('x')).toThrow('`codec` must be synchronous: this schema returned a promise');
  expect(() => check('x')).toThrow(TradeFeedError);
  await untilReported();
});

describe('decodeFailure', () => {
  const payload = `{"account":"${'secret'.repeat(50)}"}`;
  const issues = Array.from({ length: 25 }, (_, n) => ({ path: `/${n}`, message: `${n}${'m'.repeat(300)}` }));

  it('has the first ten issues, with messages of at most 200 characters', () => {
    const failure = decodeFailure(frameOf(payload, 5, 2), issues);
    expect(failure.issues.map(({ path }) => path)).toEqual(issues.slice(0, 10).map(({ path }) => path));
    for (const { message } of failure.issues) expect(message).toMatch(/^\dm{198}…$/);
    const long = [{ path: '', message: 'm'.repeat(200) }];
    expect(decodeFailure(frameOf(''), long).issues).toEqual(long);
  });

  it('names the document in its error if the codec gave no reason', () => {
    const { message } = new DecodeError(decodeFailure(frameOf('{}'), []));
    expect(message).toContain("(2 bytes) doesn't match the codec: the document: refused.");
  });

  it("doesn't contain the payload in any form", () => {
    const failure = decodeFailure(frameOf(payload), [{ path: '', message: 'x' }]);
    const shown = [
      inspect(failure, { depth: 9 }),
      JSON.stringify(failure),
      inspect(new DecodeError(failure), { depth: 9 }),
    ];
    for (const text of shown) expect(text).not.toContain('secret');
  });
});
