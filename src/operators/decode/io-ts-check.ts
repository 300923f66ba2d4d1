import { type Either, isRight, left, right } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import { type DecodeIssue, jsonPointer } from './decode-failure.js';

/** Checks a document; what is wrong with one that is refused is found out only when it is asked for. */
export type Check<A> = (document: unknown) => Either<() => readonly DecodeIssue[], A>;

/**
 * Makes the check of a codec of io-ts. One that changes nothing is asked by its guard, and decodes only what that refuses: decoding
 * keeps account of where it is, for the sake of errors.
 */
export const ioTsCheck = <A>(codec: t.Type<A, unknown>): Check<A> => {
  const guarded = changesNothing(codec);
  return (document) => {
    if (guarded && codec.is(document)) return right(document);
    const result = codec.decode(document);
    return isRight(result) ? result : left(() => result.left.map(ioTsIssue));
  };
};

const ioTsIssue = ({ context, message }: t.ValidationError): DecodeIssue => ({
  path: jsonPointer(context.filter((_, n) => n > 0 && !isAlternative(context[n - 1])).map(({ key }) => key)),
  message: message ?? `expected ${context.at(-1)?.type.name ?? 'something else'}`,
});

// The members of a union or an intersection are numbered in the context, but are no place in the document.
const isAlternative = (entry: t.ContextEntry | undefined): boolean => {
  const tag = entry && unwrapped(entry.type)._tag;
  return tag === 'UnionType' || tag === 'IntersectionType';
};

/** A type of io-ts as its documentation shows it: a tag, and the types that it is made of. */
interface Tagged {
  readonly decode: (value: unknown) => unknown;
  readonly _tag?: string;
  readonly type?: Tagged;
  readonly types?: readonly Tagged[];
  readonly props?: Readonly<Record<string, Tagged>>;
  readonly domain?: Tagged;
  readonly codomain?: Tagged;
}

const unwrapped = (codec: Tagged): Tagged =>
  codec.type !== undefined && wrappers.has(codec._tag) ? unwrapped(codec.type) : codec;

const wrappers: ReadonlySet<string | undefined> = new Set([
  'ExactType',
  'RefinementType',
  'ReadonlyType',
  'RecursiveType',
]);

/**
 * Tells whether a codec gives what it was given, so that its guard alone decides. Codecs that strip (`t.exact`, `t.strict`, a record
 * of named keys), transform or check in a way of their own (whatever is no combination of io-ts' own) do not.
 */
const changesNothing = (codec: Tagged, seen: ReadonlySet<Tagged> = new Set()): boolean => {
  if (seen.has(codec)) return true;
  const inside = isOwn(codec) ? partsOf[codec._tag ?? '']?.(codec) : undefined;
  return inside?.every((part) => changesNothing(part, new Set(seen).add(codec))) ?? false;
};

// A clone with a validation of its own (`withValidate` and `withMessage` of io-ts-types make such) keeps the tag, the parts and the guard of what
// it was cloned from, but has another decoder. That of io-ts' own is bound, by the constructor.
const isOwn = ({ decode }: Tagged): boolean => decode.name.startsWith('bound ');

const nothing = (): readonly Tagged[] => [];
const inner = ({ type }: Tagged): readonly Tagged[] | undefined => type && [type];
const members = ({ types }: Tagged): readonly Tagged[] | undefined => types;
const properties = ({ props }: Tagged): readonly Tagged[] | undefined => props && Object.values(props);

/** What a type is made of, for those types whose decoder gives back what it was given. */
const partsOf: Readonly<Record<string, (codec: Tagged) => readonly Tagged[] | undefined>> = {
  NullType: nothing,
  UndefinedType: nothing,
  VoidType: nothing,
  UnknownType: nothing,
  StringType: nothing,
  NumberType: nothing,
  BooleanType: nothing,
  LiteralType: nothing,
  KeyofType: nothing,
  AnyArrayType: nothing,
  AnyDictionaryType: nothing,
  ArrayType: inner,
  ReadonlyArrayType: inner,
  ReadonlyType: inner,
  RefinementType: inner,
  RecursiveType: inner,
  UnionType: members,
  IntersectionType: members,
  TupleType: members,
  InterfaceType: properties,
  PartialType: properties,
  DictionaryType: ({ domain, codomain }) =>
    domain?._tag === 'StringType' && codomain ? [domain, codomain] : undefined,
};
