import { describe, expect, it, jest } from '@jest/globals';
import * as t from 'io-ts';
import { compiledGuard } from '../../../../src/operators/decode/io-ts-guard/compiled-guard.js';
import { guardSource } from '../../../../src/operators/decode/io-ts-guard/guard-source.js';
import type { Tagged } from '../../../../src/operators/decode/io-ts-guard/tagged.js';
import { runBundled } from '../run-bundled.js';

const guard = (codec: t.Mixed): ((value: unknown) => boolean) => compiledGuard(codec)!;
const keyed = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, null]));

const holes = [1, , 2];
const inherited = Object.create({ a: 1 }) as object;
const bare = Object.assign(Object.create(null) as object, { a: 1 });
const many = Array.from({ length: 20 }, (_, n) => `k${n}`);
const own = JSON.parse('{"__proto__":1}') as unknown;
const kinds = t.union([
  t.type({ kind: t.literal('a'), n: t.number }),
  t.intersection([t.type({ s: t.string }), t.type({ kind: t.literal('b') })]),
  t.union([t.type({ kind: t.literal('c'), s: t.string }), t.type({ kind: t.literal('e') })]),
  t.readonly(t.type({ kind: t.literal(true) })),
  t.recursion('R', () => t.type({ kind: t.literal(4) })),
]);

/** Valid and invalid documents: for unexpected rules of io-ts, and for texts that could become code. */
const traps: readonly [string, t.Mixed, readonly unknown[], readonly unknown[]][] = [
  ['string', t.string, ['', 'a'], [1, null, undefined, new String('a')]],
  ['number, NaN too', t.number, [0, -0, NaN, Infinity], ['1', null, 1n]],
  ['Int', t.Int, [0, -1, 2 ** 60], [1.5, NaN, Infinity, '1']],
  ['bigint', t.bigint, [1n], [1]],
  ['boolean', t.boolean, [true, false], [0, null]],
  ['null', t.null, [null], [undefined, 0]],
  ['undefined', t.undefined, [undefined], [null]],
  ['void', t.void, [undefined], [null]],
  ['unknown', t.unknown, [undefined, null, 1, {}], []],
  ['any', t.any, [undefined, null, 1, {}], []],
  ['never', t.never as unknown as t.Mixed, [], [undefined, null, 1, {}]],
  ['Function', t.Function, [() => 1, class {}], [{}]],
  ['object', t.object, [{}, []], [null, () => 1]],
  ['UnknownArray', t.UnknownArray, [[], new Proxy([], {})], [{ length: 0 }, null]],
  ['UnknownRecord', t.UnknownRecord, [{}, bare, new Date(), new Proxy({}, {})], [[], null, () => 1]],
  ['a literal of text', t.literal('"];\u2028'), ['"];\u2028'], ['', '"];']],
  ['a literal of a lone surrogate', t.literal('\ud800'), ['\ud800'], ['\ufffd']],
  ['a negative literal', t.literal(-1), [-1], [1, '-1']],
  ['a literal NaN', t.literal(NaN), [], [NaN, 0]],
  ['a literal that is neither a text nor a number', t.literal(null as unknown as string), [null], [undefined, 'null']],
  ['keyof', t.keyof({ a: null, toString: null }), ['a', 'toString'], ['valueOf', '', null, 1, ['a']]],
  ['keyof without keys', t.keyof(keyed([])), [], ['', 'toString', null]],
  ['keyof with many keys', t.keyof(keyed(many)), ['k0', 'k19'], ['k20', 'toString', ['k0'], 1]],
  ['type', t.type({ a: t.number }), [{ a: 1, b: 2 }, bare, inherited], [{}, [], null, { a: '1' }, undefined]],
  ['type of a property that Object has', t.type({ toString: t.Function }), [{}], [bare, { toString: 1 }]],
  ['type of an own __proto__', t.type({ ['__proto__']: t.number }), [own], [{}, null]],
  ['type of a property that may not be missing', t.type({ a: t.unknown }), [{ a: undefined }, { a: 1 }], [{}, []]],
  [
    'type of undefined or another type',
    t.type({ a: t.union([t.string, t.undefined]), b: t.literal(undefined as unknown as string) }),
    [{ a: undefined, b: undefined }],
    [{ b: undefined }, { a: '' }, {}],
  ],
  ['type of a brand of undefined', t.type({ a: t.refinement(t.undefined, () => true) }), [{ a: undefined }], [{}]],
  ['type without properties', t.type({}), [{}], [[], null]],
  [
    'type of unusual names',
    t.type({ '"];throw 1;//\u2029`${x}': t.null, '': t.null }),
    [{ '"];throw 1;//\u2029`${x}': null, '': null }],
    [{}],
  ],
  ['partial', t.partial({ a: t.number }), [{}, { a: undefined }, { a: 1 }, bare], [{ a: null }, [], null]],
  ['array', t.array(t.number), [[], [1, 2]], [{ length: 0 }, [1, '2'], null]],
  ['array with holes', t.array(t.number), [], [holes]],
  ['array that may have holes', t.array(t.union([t.number, t.undefined])), [holes], []],
  ['readonlyArray', t.readonlyArray(t.number), [[1]], [['1'], {}]],
  ['tuple', t.tuple([t.number, t.string]), [[1, 'a']], [[1], [1, 'a', 2], ['a', 1], {}]],
  ['tuple that may end early', t.tuple([t.number, t.undefined]), [[1], [1, undefined]], [[], [1, 2]]],
  ['tuple without items', t.tuple([] as never), [[]], [[1], {}]],
  ['record', t.record(t.string, t.number), [{}, { a: 1 }, own, bare, inherited], [{ a: '1' }, [], null]],
  ['record of anything', t.record(t.string, t.any), [{}, [], [1]], [null, 1]],
  ['record of unknown', t.record(t.string, t.unknown), [{}], [[], null]],
  ['readonly', t.readonly(t.type({ a: t.number })), [{ a: 1 }], [{}]],
  ['refinement', t.refinement(t.string, (s) => s.length as never), ['a'], ['', 1]],
  ['union', t.union([t.number, t.type({ a: t.null })]), [1, { a: null }], ['1', {}]],
  [
    'intersection',
    t.intersection([t.type({ a: t.null }), t.partial({ b: t.null })]),
    [{ a: null }],
    [{ a: null, b: 1 }, {}],
  ],
  ['intersection without members', t.intersection([] as never), [1, {}], []],
  [
    'union with tags',
    kinds,
    [{ kind: 'a', n: 1 }, { kind: 'b', s: '' }, { kind: 'c', s: '' }, { kind: 'e' }, { kind: true }, { kind: 4 }],
    [{ kind: 'a' }, { kind: 'b' }, { kind: 'd' }, {}, [], null, { kind: '4' }],
  ],
];

describe('compiledGuard', () => {
  it.each(traps)('has the result of the decoder of %s', (_name, codec, fitting, other) => {
    const fits = guard(codec);
    for (const value of fitting) {
      expect(fits(value)).toBe(true);
      // For a value with a NaN, io-ts creates an equal copy.
      expect(codec.decode(value)).toEqual(t.success(value));
    }
    for (const value of other) {
      expect(fits(value)).toBe(false);
      const result = codec.decode(value);
      if (result._tag === 'Right') expect(result.right).not.toBe(value);
    }
  });

  it('reads each property once', () => {
    const read = jest.fn(() => 'a');
    const value = Object.defineProperty({}, 'a', { get: read });
    expect(guard(t.type({ a: t.union([t.number, t.keyof({ b: null, a: null }), t.undefined]) }))(value)).toBe(true);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('calls a predicate with the value only, and only after the inner type accepted it', () => {
    const predicate = jest.fn(function (this: unknown, ..._: readonly unknown[]) {
      return this === undefined;
    });
    const fits = guard(t.array(t.refinement(t.string, predicate as () => boolean)));
    expect(fits(['a'])).toBe(true);
    expect(fits([1])).toBe(false);
    expect(predicate.mock.calls).toEqual([['a']]);
  });

  it('tests only the member of a union that has the tag', () => {
    const throwing = t.refinement(t.string, (s) => BigInt(s) > 0n);
    const codec = t.union([
      t.intersection([t.type({ amount: throwing }), t.type({ kind: t.literal('sold') })]),
      t.type({ amount: t.string, kind: t.literal('offered') }),
    ]);
    expect(guard(codec)({ kind: 'offered', amount: 'any' })).toBe(true);
  });

  it('writes a type once, however often it is used', () => {
    const Price = t.type({ amount: t.string });
    const { text } = guardSource(t.type({ a: Price, b: Price, all: t.array(Price) }));
    expect(text.split('"amount"')).toHaveLength(2);
  });

  it('contains no text of the user except names and literals', () => {
    const predicate = () => true;
    const codec = t.type({ a: t.refinement(t.string, predicate, '*/ throw 1') }, '*/ throw 2');
    const { text, captured } = guardSource(codec);
    expect(text).not.toContain('throw');
    expect(captured).toEqual([predicate]);
  });

  it('leaves unknown types to the decoder', () => {
    const odd: Tagged = { _tag: 'OddType', decode: () => undefined };
    expect(compiledGuard(odd)!(1)).toBe(false);
  });
});

describe('where code generation is disallowed', () => {
  it('compiles nothing, and throws nothing', () => {
    const disallowed = function () {
      throw new EvalError('Code generation from strings disallowed for this context');
    };
    const allowed = globalThis.Function;
    globalThis.Function = disallowed as unknown as FunctionConstructor;
    const compiled = compiledGuard(t.string);
    globalThis.Function = allowed;
    expect(compiled).toBeUndefined();
  });

  it('decodes in the same way', async () => {
    const program = `
      import * as t from 'io-ts';
      import { Subject } from 'rxjs';
      import { Frame } from './src/protocol/frame.js';
      import { decodeWith } from './src/operators/decode-with.js';
      import { compiledGuard } from './src/operators/decode/io-ts-guard/compiled-guard.js';
      const codec = t.type({ n: t.number });
      const frames = new Subject();
      const seen = [];
      const onInvalid = ({ issues }) => seen.push(issues[0].path);
      frames.pipe(decodeWith(codec, { onInvalid })).subscribe(({ value }) => seen.push(value));
      for (const text of ['{"n":1}', '{"n":"x"}', '{"n":2}'])
        frames.next(new Frame('raw', Buffer.from(text), false, 0, 1));
      console.log(JSON.stringify([compiledGuard(codec) === undefined, ...seen]));`;
    const printed = await runBundled(program, ['--disallow-code-generation-from-strings']);
    expect(printed).toEqual([true, { n: 1 }, '/n', { n: 2 }]);
  }, 30_000);
});

it('defines no names outside of itself', () => {
  expect(guard(t.tuple([t.string, t.number]))(['a', 1])).toBe(true);
  expect(guard(t.partial({ a: t.string }))({ a: 'a' })).toBe(true);
  expect(Object.keys(globalThis)).not.toContain('x');
});
