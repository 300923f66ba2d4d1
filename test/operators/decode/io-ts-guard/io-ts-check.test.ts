import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { isRight, right, type Right } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { ioTsCheck } from '../../../../src/operators/decode/io-ts-guard/io-ts-check.js';
import { cases } from '../../../support/cases.js';

interface Tree {
  readonly value: number;
  readonly next: Tree | null;
}
const Tree: t.Type<Tree> = t.recursion('Tree', () => t.type({ value: t.number, next: t.union([Tree, t.null]) }));
const Upper = new t.Type<string>(
  'Upper',
  t.string.is,
  (u, c) => (t.string.is(u) ? t.success(u.toUpperCase()) : t.failure(u, c)),
  t.identity,
);
const Positive = t.refinement(t.number, (n) => n > 0, 'Positive');

/** Codecs that return their input: the guard decides about a valid document. */
const plain: readonly [string, t.Mixed, unknown][] = [
  ['null', t.null, null],
  ['undefined', t.undefined, undefined],
  ['void', t.void, undefined],
  ['unknown', t.unknown, 1],
  ['string', t.string, 'a'],
  ['number', t.number, 1],
  ['boolean', t.boolean, true],
  ['literal', t.literal('a'), 'a'],
  ['keyof', t.keyof({ a: null }), 'a'],
  ['UnknownArray', t.UnknownArray, [1]],
  ['UnknownRecord', t.UnknownRecord, { a: 1 }],
  ['array', t.array(t.number), [1]],
  ['readonlyArray', t.readonlyArray(t.number), [1]],
  ['readonly', t.readonly(t.type({ a: t.number })), { a: 1 }],
  ['a refinement', Positive, 1],
  ['a recursion', Tree, { value: 1, next: { value: 2, next: null } }],
  ['union', t.union([t.string, t.number]), 1],
  ['intersection', t.intersection([t.type({ a: t.number }), t.partial({ b: t.number })]), { a: 1 }],
  ['tuple', t.tuple([t.number, t.string]), [1, 'a']],
  ['type', t.type({ a: t.number }), { a: 1, b: 2 }],
  ['partial', t.partial({ a: t.number }), {}],
  ['record', t.record(t.string, t.number), { a: 1 }],
];

/** Codecs that change the document: only the decoder can decide. */
const changing: readonly [string, t.Mixed, unknown, unknown][] = [
  ['exact', t.exact(t.type({ a: t.number })), { a: 1, b: 2 }, { a: 1 }],
  ['strict', t.strict({ a: t.number }), { a: 1, b: 2 }, { a: 1 }],
  ['a custom codec', Upper, 'a', 'A'],
  ['a record of named keys', t.record(t.keyof({ a: null }), t.number), { a: 1, b: 2 }, { a: 1 }],
  ['a record of literals', t.record(t.literal('a'), t.number), { a: 1, b: 2 }, { a: 1 }],
  ['type of it', t.type({ a: Upper }), { a: 'a' }, { a: 'A' }],
  ['partial of it', t.partial({ a: Upper }), { a: 'a' }, { a: 'A' }],
  ['array of it', t.array(Upper), ['a'], ['A']],
  ['readonly of it', t.readonly(t.type({ a: Upper })), { a: 'a' }, { a: 'A' }],
  ['readonlyArray of it', t.readonlyArray(Upper), ['a'], ['A']],
  ['record of it', t.record(t.string, Upper), { x: 'a' }, { x: 'A' }],
  ['tuple of it', t.tuple([t.number, Upper]), [1, 'a'], [1, 'A']],
  ['union of it', t.union([t.number, Upper]), 'a', 'A'],
  [
    'intersection of it',
    t.intersection([t.type({ a: Upper }), t.type({ b: t.number })]),
    { a: 'a', b: 1 },
    { a: 'A', b: 1 },
  ],
  ['refinement of it', t.refinement(Upper, () => true), 'a', 'A'],
  [
    'recursion of it',
    t.recursion('R', (self: t.Mixed): t.Mixed => t.type({ a: Upper, b: t.union([self, t.null]) })),
    { a: 'a', b: null },
    { a: 'A', b: null },
  ],
];

/** Clones a codec as io-ts-types does, and changes some fields. */
const clone = (codec: t.Mixed, changes: Partial<t.Mixed>): t.Mixed =>
  Object.assign(Object.create(Object.getPrototypeOf(codec) as object) as t.Mixed, codec, changes);

/** Clones a codec with custom validation, as `withValidate` of io-ts-types does. */
const withValidate = (codec: t.Mixed, validate: t.Validate<unknown, unknown>): t.Mixed => {
  const cloned = clone(codec, { validate });
  return Object.assign(cloned, { decode: (u: unknown) => validate(u, [{ key: '', type: cloned, actual: u }]) });
};
const positive = withValidate(t.number, (u, c) => (Number(u) > 0 ? t.success(u) : t.failure(u, c, 'not positive')));
const refuse: t.Validate<unknown, never> = (u, c) => t.failure(u, c);

/** Codecs with custom validation, but the tag, the parts and the guard of a codec without it; the document is refused. */
const cloned: readonly [string, t.Mixed, unknown][] = [
  ['a clone', positive, -1],
  ['a clone with another decoder', clone(t.number, { decode: (u) => refuse(u, []) }), 1],
  ['a clone of a type', withValidate(t.type({ a: t.number }), refuse), { a: 1 }],
  ['a clone of a union', t.array(withValidate(t.union([t.number, t.string]), refuse)), [1]],
  ['a clone with the validation of another type', t.tuple([withValidate(t.number, t.string.validate)]), [1]],
  ['type of a clone', t.type({ a: positive }), { a: -1 }],
  ['partial of a clone', t.partial({ a: positive }), { a: -1 }],
  ['array of a clone', t.array(positive), [-1]],
  ['readonlyArray of a clone', t.readonlyArray(positive), [-1]],
  ['readonly of a clone', t.readonly(positive), -1],
  ['record of a clone', t.record(t.string, positive), { a: -1 }],
  ['tuple of a clone', t.tuple([positive]), [-1]],
  ['union of a clone', t.union([t.string, positive]), -1],
  ['intersection of a clone', t.intersection([positive, t.unknown]), -1],
  ['refinement of a clone', t.refinement(positive, () => true), -1],
  ['recursion of a clone', t.recursion('R', (): t.Mixed => t.type({ a: positive })), { a: -1 }],
];

const check = (codec: t.Mixed) => ioTsCheck(codec as t.Type<unknown>);

const value = (codec: t.Mixed, document: unknown): unknown => {
  const result = check(codec)(document);
  if (isRight(result)) return result.right;
  throw new Error(JSON.stringify(result.left()));
};

const issuesOf = (codec: t.Mixed, document: unknown): unknown => {
  const result = check(codec)(document);
  return isRight(result) ? [] : result.left();
};

describe('ioTsCheck', () => {
  it.each(plain)('for %s, calls only a guard, and returns the document itself', (_name, codec, document) => {
    const checked = check(codec);
    const first = checked(document);
    const validate = jest.spyOn(codec, 'validate');
    expect(first).toEqual(right(document));
    expect((checked(document) as Right<unknown>).right).toBe(document);
    expect(validate).not.toHaveBeenCalled();
    jest.restoreAllMocks();
  });

  it.each(plain)("for %s, calls the codec's guard where code generation is disallowed", (_name, codec, document) => {
    const checked = ioTsCheck(codec as t.Type<unknown>, () => undefined);
    checked(document);
    const validate = jest.spyOn(codec, 'validate');
    const is = jest.spyOn(codec, 'is');
    expect((checked(document) as Right<unknown>).right).toBe(document);
    expect(validate).not.toHaveBeenCalled();
    expect(is).toHaveBeenCalled();
    jest.restoreAllMocks();
  });

  it.each(changing)('for %s, the decoder creates the value', (_name, codec, document, expected) => {
    expect(value(codec, document)).toEqual(expected);
  });

  it.each(cloned)('for %s, the decoder refuses a document that the guard accepts', (_name, codec, document) => {
    expect(codec.is(document)).toBe(true);
    expect(isRight(check(codec)(document))).toBe(false);
  });

  it('for a record with custom validation of its keys, the decoder decides', () => {
    const upper = withValidate(t.string, (u) => t.success(String(u).toUpperCase()));
    expect(value(t.record(upper, t.number), { a: 1 })).toEqual({ A: 1 });
  });

  it('calls `compile` for the first document, not before', () => {
    const definition = jest.fn((): t.Mixed => t.null);
    const compile = jest.fn(() => undefined);
    const checked = ioTsCheck(t.recursion('R', definition), compile);
    expect(definition).not.toHaveBeenCalled();
    for (let n = 0; n < 3; n += 1) checked(null);
    expect(compile).toHaveBeenCalledTimes(1);
  });

  it('accepts a document that the guard refuses and the decoder accepts', () => {
    const codec = t.type({ a: t.union([t.string, t.undefined]) });
    expect(codec.is({})).toBe(false);
    expect(value(codec, {})).toEqual({ a: undefined });
  });

  it('leaves the numbers of unions and intersections out of the path', () => {
    const codec = t.type({
      list: t.array(
        t.union([t.type({ kind: t.literal('a'), n: t.number }), t.type({ kind: t.literal('b'), s: t.string })]),
      ),
      both: t.exact(t.intersection([t.type({ x: t.number }), t.type({ y: t.number })])),
    });
    expect(issuesOf(codec, { list: [{ kind: 'a', n: 'x' }], both: { x: 1, y: 'y' } })).toEqual([
      { path: '/list/0/n', message: 'expected number' },
      { path: '/both/y', message: 'expected number' },
    ]);
    const branded = t.refinement(t.union([t.string, t.number]), () => true);
    expect(issuesOf(t.type({ v: branded }), { v: true })).toEqual([
      { path: '/v', message: 'expected string' },
      { path: '/v', message: 'expected number' },
    ]);
    const Nested: t.Mixed = t.recursion('Nested', (self: t.Mixed): t.Mixed =>
      t.union([t.string, t.type({ in: self })]),
    );
    expect(issuesOf(Nested, { in: 1 })).toContainEqual({ path: '/in', message: 'expected string' });
    expect(issuesOf(Tree, { value: 1, next: { value: 'x', next: null } })).toContainEqual({
      path: '/next/value',
      message: 'expected number',
    });
  });

  it('returns the message of a codec that has one', () => {
    const Even = new t.Type<number>(
      'Even',
      t.number.is,
      (u, c) => t.failure(u, c, 'expected an even number'),
      t.identity,
    );
    expect(issuesOf(t.array(Even), [1])).toEqual([{ path: '/0', message: 'expected an even number' }]);
  });

  it('has the result of the decoder for every document', () => {
    const codec = t.type({
      a: t.union([t.number, t.string]),
      b: t.array(t.partial({ c: t.boolean })),
    });
    const part = fc.oneof(
      fc.integer(),
      fc.string(),
      fc.constant(null),
      fc.array(fc.record({ c: fc.oneof(fc.boolean(), fc.integer()) }, { requiredKeys: [] })),
    );
    fc.assert(
      fc.property(fc.record({ a: part, b: part }, { requiredKeys: [] }), (document) => {
        expect(isRight(check(codec)(document))).toBe(isRight(codec.decode(document)));
      }),
      { numRuns: cases(100) },
    );
  });
});
