import { type Tagged, wrappers } from './tagged.js';

/** A member of a union, and the literals that identify it. */
export interface TaggedMember {
  readonly member: Tagged;
  readonly literals: readonly unknown[];
}

/**
 * Returns the literals that identify each member of a union, as io-ts finds them: the literals that the member requires for
 * the property `tag`. Returns `undefined` if nothing identifies the members.
 */
export const unionTags = ({ tag, types }: Tagged): readonly TaggedMember[] | undefined => {
  if (tag === undefined || types === undefined) return undefined;
  const all = types.map((member) => ({ member, literals: literalsOf(member, tag, []) }));
  const literals = all.flatMap((each) => each.literals);
  // A `t.taggedUnion` has a tag even if the tag does not identify its members.
  return all.every((each) => isSome(each.literals)) && new Set(literals).size === literals.length ? all : undefined;
};

const literalsOf = (codec: Tagged, tag: string, outside: readonly Tagged[]): readonly unknown[] => {
  if (outside.includes(codec)) return [];
  const within = (part: Tagged) => literalsOf(part, tag, [...outside, codec]);
  const { _tag, type, types = [], props = {} } = codec;
  if (_tag === 'InterfaceType') return props[tag]?._tag === 'LiteralType' ? [props[tag].value] : [];
  if (_tag === 'IntersectionType') return types.map(within).find(isSome) ?? [];
  if (_tag === 'UnionType') {
    const all = types.map(within);
    return all.every(isSome) ? all.flat() : [];
  }
  return type && wrappers.has(_tag) ? within(type) : [];
};

const isSome = ({ length }: readonly unknown[]): boolean => length > 0;
