import { type Tagged, wrappers } from './tagged.js';

/** A member of a union, and the literals that tell it apart from the others. */
export interface TaggedMember {
  readonly member: Tagged;
  readonly literals: readonly unknown[];
}

/**
 * Finds what tells the members of a union apart, as io-ts does: the literals that each of them demands for one property. Undefined where
 * nothing does.
 */
export const unionTags = ({ tag, types }: Tagged): readonly TaggedMember[] | undefined => {
  if (tag === undefined || types === undefined) return undefined;
  const all = types.map((member) => ({ member, literals: literalsOf(member, tag, []) }));
  const literals = all.flatMap((each) => each.literals);
  // What `t.taggedUnion` could not tell apart has a tag as well.
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
