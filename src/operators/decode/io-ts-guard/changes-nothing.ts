import type { Either } from 'fp-ts/lib/Either.js';
import { isRight } from '../../../protocol/either.js';
import { isScalar, mayAcceptUndefined, scalars, type Tagged } from './tagged.js';
import { unionTags } from './union-tags.js';

/**
 * Returns whether decoding returns the same value for every document that the codec's guard accepts. Then such a
 * document does not need to be decoded.
 *
 * `false` for codecs that remove properties (`t.exact`, `t.strict`, a record of named keys), that transform, or that are not combinations of
 * io-ts types.
 */
export const changesNothing = (codec: Tagged): boolean => {
  const seen = new Set<Tagged>();
  const isUnchanged = (part: Tagged): boolean => {
    if (seen.has(part)) return true;
    seen.add(part);
    const inside = hasOriginalDecoder(part) ? partsOf(part) : undefined;
    return inside !== undefined && inside.every(isUnchanged) && !isMatchedEarlier(part);
  };
  return isUnchanged(codec);
};

// A clone with custom validation (`withValidate` and `withMessage` of io-ts-types) has the tag, the parts and the guard of the original, but
// another decoder. The constructor of io-ts binds its decoder.
const hasOriginalDecoder = (codec: Tagged): boolean =>
  codec.decode.name.startsWith('bound ') && !isTaggedByHand(codec) && isDecoderBoundTo(codec);

const isTaggedByHand = (codec: Tagged): boolean => Object.hasOwn(Object.getPrototypeOf(codec) as object, 'decode');

// A copy of a codec may have a decoder that is bound to the original. That decoder ignores changes of the copy. Its errors contain the original.
const isDecoderBoundTo = (codec: Tagged): boolean => {
  try {
    const result = codec.decode(notInJson) as Either<readonly Problem[], unknown>;
    return isRight(result) || result.left.every(({ context }) => context[0]?.type === codec);
  } catch {
    return false;
  }
};

interface Problem {
  readonly context: readonly { readonly type: unknown }[];
}

const notInJson = Symbol('a value that JSON cannot contain');

const partsOf = (codec: Tagged): readonly Tagged[] | undefined =>
  scalars.has(codec._tag) ? [] : parts.get(codec._tag)?.(codec);

const noParts = (): readonly Tagged[] => [];
const inner = ({ type }: Tagged): readonly Tagged[] | undefined => type && [type];
const members = ({ types }: Tagged): readonly Tagged[] | undefined => types;
const properties = ({ props }: Tagged): readonly Tagged[] | undefined => props && Object.values(props);
const values = ({ domain, codomain }: Tagged): readonly Tagged[] | undefined =>
  domain?._tag === 'StringType' && codomain ? [domain, codomain] : undefined;

/** Functions that return the parts of a type, by tag. Only types whose decoder returns its input, if the parts do. */
const parts: ReadonlyMap<string | undefined, (codec: Tagged) => readonly Tagged[] | undefined> = new Map([
  ['UnknownType', noParts],
  ['AnyType', noParts],
  ['FunctionType', noParts],
  ['ObjectType', noParts],
  ['AnyArrayType', noParts],
  ['AnyDictionaryType', noParts],
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

// A union decodes with the first member that accepts the document. The guard of that member refuses a document that decoding would change. Then
// the guard of a later member may accept it, although the decoder would return a changed document.
const isMatchedEarlier = (codec: Tagged): boolean => {
  const { _tag, types } = codec;
  if (_tag !== 'UnionType' || types === undefined || unionTags(codec)) return false;
  const first = types.findIndex((member) => mayChange(member, new Set()));
  return first !== -1 && !types.slice(first + 1).every(isScalar);
};

// The decoder cuts a tuple to its length, and adds a missing property that may be undefined.
const mayChange = (codec: Tagged, seen: Set<Tagged>): boolean => {
  if (seen.has(codec)) return false;
  seen.add(codec);
  const inside = partsOf(codec) ?? [];
  const changes = codec._tag === 'TupleType' || (codec._tag === 'InterfaceType' && inside.some(mayAcceptUndefined));
  return changes || inside.some((part) => mayChange(part, seen));
};
