import { type Either, isRight } from 'fp-ts/lib/Either.js';
import { isScalar, mayTakeUndefined, scalars, type Tagged } from './tagged.js';
import { unionTags } from './union-tags.js';

/**
 * Tells whether a codec gives what it was given wherever its guard says yes, so that the guard alone decides. Codecs that strip (`t.exact`,
 * `t.strict`, a record of named keys), transform or check in a way of their own (whatever is no combination of io-ts' own) do not.
 */
export const changesNothing = (codec: Tagged): boolean => {
  const seen = new Set<Tagged>();
  const holds = (part: Tagged): boolean => {
    if (seen.has(part)) return true;
    seen.add(part);
    const inside = isOwn(part) ? partsOf(part) : undefined;
    return inside !== undefined && inside.every(holds) && !isOvertaken(part);
  };
  return holds(codec);
};

// A clone with a validation of its own (`withValidate` and `withMessage` of io-ts-types make such) keeps the tag, the parts and the guard of what
// it was cloned from, but has another decoder. That of io-ts' own is bound, by the constructor.
const isOwn = (codec: Tagged): boolean =>
  codec.decode.name.startsWith('bound ') && !isTaggedByHand(codec) && speaksForItself(codec);

const isTaggedByHand = (codec: Tagged): boolean => Object.hasOwn(Object.getPrototypeOf(codec) as object, 'decode');

// A copy that kept the decoder speaks for the original, whatever was changed in it.
const speaksForItself = (codec: Tagged): boolean => {
  try {
    const result = codec.decode(nothingOfJson) as Either<readonly Problem[], unknown>;
    return isRight(result) || result.left.every(({ context }) => context[0]?.type === codec);
  } catch {
    return false;
  }
};

interface Problem {
  readonly context: readonly { readonly type: unknown }[];
}

const nothingOfJson = Symbol('what no document holds');

const partsOf = (codec: Tagged): readonly Tagged[] | undefined =>
  scalars.has(codec._tag) ? [] : parts.get(codec._tag)?.(codec);

const nothing = (): readonly Tagged[] => [];
const inner = ({ type }: Tagged): readonly Tagged[] | undefined => type && [type];
const members = ({ types }: Tagged): readonly Tagged[] | undefined => types;
const properties = ({ props }: Tagged): readonly Tagged[] | undefined => props && Object.values(props);
const values = ({ domain, codomain }: Tagged): readonly Tagged[] | undefined =>
  domain?._tag === 'StringType' && codomain ? [domain, codomain] : undefined;

/** What a type is made of, for those whose decoder gives back what it was given. */
const parts: ReadonlyMap<string | undefined, (codec: Tagged) => readonly Tagged[] | undefined> = new Map([
  ['UnknownType', nothing],
  ['AnyType', nothing],
  ['FunctionType', nothing],
  ['ObjectType', nothing],
  ['AnyArrayType', nothing],
  ['AnyDictionaryType', nothing],
  ['ArrayType', inner],
  ['ReadonlyArrayType', inner],
  ['ReadonlyType', inner],
  ['RefinementType', inner],
  ['RecursiveType', inner],
  ['UnionType', members],
  ['IntersectionType', members],
  ['TupleType', members],
  ['InterfaceType', properties],
  ['PartialType', properties],
  ['DictionaryType', values],
]);

// A union decodes by the first member that can. Where that one would change the document, its guard says no, and the guard of a later member yes.
const isOvertaken = (codec: Tagged): boolean => {
  const { _tag, types } = codec;
  if (_tag !== 'UnionType' || types === undefined || unionTags(codec)) return false;
  const first = types.findIndex((member) => mayChange(member, new Set()));
  return first !== -1 && !types.slice(first + 1).every(isScalar);
};

// A tuple is cut to its length, and a property that may be undefined is added where it is missing.
const mayChange = (codec: Tagged, seen: Set<Tagged>): boolean => {
  if (seen.has(codec)) return false;
  seen.add(codec);
  const inside = partsOf(codec) ?? [];
  const changes = codec._tag === 'TupleType' || (codec._tag === 'InterfaceType' && inside.some(mayTakeUndefined));
  return changes || inside.some((part) => mayChange(part, seen));
};
