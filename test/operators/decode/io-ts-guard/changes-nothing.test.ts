import { describe, expect, it, jest } from '@jest/globals';
import * as t from 'io-ts';
import { changesNothing } from '../../../../src/operators/decode/io-ts-guard/changes-nothing.js';
import { unionTags } from '../../../../src/operators/decode/io-ts-guard/union-tags.js';

const copy = (codec: t.Mixed, changes: Partial<t.Mixed> = {}): t.Mixed =>
  Object.assign(Object.create(Object.getPrototypeOf(codec) as object) as t.Mixed, codec, changes);

const refuse: t.Validate<unknown, never> = (u, c) => t.failure(u, c);

const Optional = t.type({ a: t.union([t.string, t.undefined]) });
const Pair = t.tuple([t.number, t.number]);

/** Codecs that look like those of io-ts. */
const lookalikes: readonly [string, t.Mixed][] = [
  ['a hand-made tag', Object.assign(new t.Type('Odd', t.string.is, refuse, t.identity), { _tag: 'StringType' })],
  [
    'a tag that any object has',
    Object.assign(new t.Type('Odd', t.string.is, refuse, t.identity), { _tag: 'toString' }),
  ],
  ['a copy with custom validation', copy(t.string, { validate: refuse })],
  ['a copy with other parts', copy(t.type({ a: t.string }), { props: { a: t.number } } as Partial<t.Mixed>)],
  ['a copy without changes', copy(t.string)],
  ['a custom decoder', copy(t.string, { decode: (u) => refuse(u, []) })],
  ['a decoder that throws for unexpected values', t.refinement(t.unknown, (u) => (u as string).startsWith('a'))],
  ['an array without its type', Object.assign(copy(t.array(t.string)), { type: undefined })],
];

describe('changesNothing', () => {
  it.each(lookalikes)('returns false for %s, alone or as a part', (_name, codec) => {
    expect(changesNothing(codec)).toBe(false);
    expect(changesNothing(t.type({ a: t.array(codec) }))).toBe(false);
  });

  it.each<[string, t.Mixed, unknown, unknown]>([
    ['a tuple that is cut', t.union([Pair, t.array(t.number)]), [1, 2, 3], [1, 2]],
    ['a tuple within', t.union([t.type({ p: Pair }), t.UnknownRecord]), { p: [1, 2, 3] }, { p: [1, 2] }],
    ['a property that is added', t.union([Optional, t.type({})]), {}, { a: undefined }],
    ['a property of undefined', t.union([t.type({ a: t.undefined }), t.UnknownRecord]), {}, { a: undefined }],
    ['a union after it', t.union([Pair, t.union([t.null, t.array(t.number)])]), [1, 2, 3], [1, 2]],
  ])(
    'returns false for a union whose first member would change a document that a later member accepts: %s',
    (_n, codec, doc, decoded) => {
      expect(codec.is(doc)).toBe(true);
      expect(codec.decode(doc)).toEqual(t.success(decoded));
      expect(changesNothing(codec)).toBe(false);
    },
  );

  it.each<[string, t.Mixed]>([
    ['it comes last', t.union([t.array(t.number), Pair])],
    [
      'the later members accept no object',
      t.union([Pair, t.null, t.union([t.string, t.literal(1)]), t.readonly(t.Int)]),
    ],
    [
      'a tag identifies the members',
      t.union([
        t.type({ kind: t.literal('a'), more: t.union([t.string, t.undefined]) }),
        t.type({ kind: t.literal('b') }),
      ]),
    ],
    ['no property may be undefined', t.union([t.type({ a: t.Int, b: t.literal(1), c: Pair.types[0] }), t.type({})])],
  ])('returns true for a union where %s', (_name, codec) => {
    expect(changesNothing(codec)).toBe(true);
  });

  it('returns true for a recursion of unions', () => {
    const Tree: t.Mixed = t.recursion('Tree', (self: t.Mixed): t.Mixed =>
      t.type({ left: t.union([self, t.null]), all: t.array(t.union([t.string, self])) }),
    );
    expect(changesNothing(Tree)).toBe(true);
  });

  it('checks each part once', () => {
    const decode = jest.fn((u: unknown) => t.string.decode(u));
    const part = copy(t.string, { decode: decode.bind(undefined) as typeof t.string.decode });
    let codec: t.Mixed = t.array(part);
    for (let n = 0; n < 30; n += 1) codec = t.type({ a: codec, b: codec }, 'Both');
    changesNothing(codec);
    expect(decode).toHaveBeenCalledTimes(1);
  });
});

describe('unionTags', () => {
  const a = t.type({ kind: t.literal('a') });

  it('returns the literals of each member', () => {
    const b = t.intersection([t.type({ n: t.number }), t.type({ kind: t.union([t.literal('b'), t.literal('c')]) })]);
    const d = t.union([t.type({ kind: t.literal('d') }), t.type({ kind: t.literal('e') })]);
    const codec = t.union([
      t.readonly(a),
      t.type({ kind: t.literal('b') }),
      d,
      t.recursion('F', () => t.type({ kind: t.literal('f') })),
    ]);
    expect(unionTags(codec)?.map(({ literals }) => literals)).toEqual([['a'], ['b'], ['d', 'e'], ['f']]);
    expect(unionTags(codec)?.map(({ member }) => member)).toEqual(codec.types);
    expect(unionTags(t.union([a, b]))).toBeUndefined();
  });

  it.each<[string, t.Mixed, t.Mixed]>([
    ['share a literal', a, t.intersection([a, t.type({ n: t.number })])],
    ['have none', a, t.type({ n: t.number })],
    ['have none in any part', a, t.intersection([t.type({ n: t.number }), t.type({ m: t.number })])],
    ['have one only in a part', a, t.union([t.type({ kind: t.literal('b') }), t.type({ n: t.number })])],
    ['are a recursion without literals', a, t.recursion('R', (self: t.Mixed): t.Mixed => t.intersection([self, self]))],
  ])('returns undefined for members that %s, although `t.taggedUnion` accepts them', (_name, one, two) => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    expect(unionTags(t.taggedUnion('kind', [one, two] as never) as unknown as t.Mixed)).toBeUndefined();
    warn.mockRestore();
  });
});
