import type * as t from 'io-ts';
import { isRight } from '../../protocol/type-guards.js';
import { type Check, type DecodeIssue, jsonPointer, Refused } from './decode-failure.js';

/**
 * Checks documents with the codec's `is` if it returns valid ones unchanged: decoding is slower, because it records the
 * path for errors. Examines the codec at the first document, because reading a recursive type runs its definition.
 */
export const ioTsCheck = <A>(codec: t.Type<A, unknown>): Check<A> => {
  let isUnchanged: boolean | undefined;
  return (document) => {
    if ((isUnchanged ??= returnsItsInput(codec)) && codec.is(document)) return document;
    const result = codec.decode(document);
    return isRight(result) ? result.right : new Refused(() => result.left.map(ioTsIssue));
  };
};

const ioTsIssue = ({ context, message }: t.ValidationError): DecodeIssue => ({
  path: jsonPointer(context.filter((_, n) => n > 0 && !isAlternative(context[n - 1])).map(({ key }) => key)),
  message: message ?? `expected ${context.at(-1)?.type.name ?? 'something else'}`,
});

// For a union or intersection, the context has the number of the member, which isn't part of the path in the document.
const isAlternative = (entry: t.ContextEntry | undefined): boolean => {
  const tag = entry && unwrapped(entry.type)._tag;
  return tag === 'UnionType' || tag === 'IntersectionType';
};

const unwrapped = (codec: Tagged): Tagged =>
  codec.type !== undefined && wrappers.has(codec._tag) ? unwrapped(codec.type) : codec;

interface Tagged {
  readonly decode: (value: unknown) => unknown;
  readonly _tag?: string;
  readonly type?: Tagged;
  readonly types?: readonly Tagged[];
  readonly props?: Readonly<Record<string, Tagged>>;
  readonly domain?: Tagged;
  readonly codomain?: Tagged;
}

type Tags = ReadonlySet<string | undefined>;
const tags = (list: string): Tags => new Set(list.split(' ').map((name) => `${name}Type`));

const wrappers = tags('Exact Refinement Readonly Recursive');

/** The decoders of these combinators and types return each document that their `is` accepts, if their parts do. */
const ofOne = tags('Array ReadonlyArray Readonly Refinement Recursive');
const ofSome = tags('Union Intersection Tuple');
const ofProperties = tags('Interface Partial');
const scalars = tags('Null Undefined Void Never String Number Boolean Literal Keyof');
const anything = tags('Unknown Any Object AnyArray AnyDictionary');

/** Returns `false` for codecs that remove properties, transform, or aren't built from io-ts types only. */
const returnsItsInput = (codec: Tagged, visited = new Set<Tagged>()): boolean => {
  if (visited.has(codec)) return true;
  visited.add(codec);
  // io-ts binds its decoders. `withValidate` and `withMessage` of io-ts-types keep the tag and `is` of the original,
  // but replace the decoder. Only the name tells them apart; its prefix is from the language, so minifiers keep it.
  // Stryker disable next-line MethodExpression: the decoder of io-ts has no name of its own after the prefix.
  const parts = codec.decode.name.startsWith('bound ') ? partsOf(codec) : undefined;
  if (!parts?.every((part) => returnsItsInput(part, visited))) return false;
  return codec._tag !== 'UnionType' || !mayChangeForOneMember(parts);
};

const partsOf = ({ _tag, type, types, props, domain, codomain }: Tagged): readonly Tagged[] | undefined => {
  if (scalars.has(_tag) || anything.has(_tag)) return [];
  if (ofOne.has(_tag)) return type && [type];
  if (ofSome.has(_tag)) return types;
  if (ofProperties.has(_tag)) return props && Object.values(props);
  // Stryker disable next-line OptionalChaining: a record has both parts. The check is for the type.
  return _tag === 'DictionaryType' && domain?._tag === 'StringType' && codomain ? [domain, codomain] : undefined;
};

// A union decodes with the first member that accepts the document. If that member changes it, the member's `is` refuses
// the document, but the `is` of a later member may accept it.
const mayChangeForOneMember = (members: readonly Tagged[]): boolean =>
  members
    .filter(({ _tag }) => !scalars.has(_tag))
    .slice(0, -1)
    .some((member) => mayChange(member, new Set()));

/** Decoding cuts a tuple to its length, and adds a missing property that may be undefined. */
const changing = tags('Tuple Undefined Void Unknown Any');

const mayChange = (codec: Tagged, visited: Set<Tagged>): boolean => {
  if (changing.has(codec._tag)) return true;
  if (visited.has(codec)) return false;
  visited.add(codec);
  // Stryker disable next-line OptionalChaining: only a codec whose parts are known gets here.
  return partsOf(codec)?.some((part) => mayChange(part, visited)) === true;
};
