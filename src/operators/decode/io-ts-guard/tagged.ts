/** A type of io-ts as its documentation shows it: a tag, and what it is made of. */
export interface Tagged {
  readonly decode: (value: unknown) => unknown;
  readonly _tag?: string;
  readonly type?: Tagged;
  readonly types?: readonly Tagged[];
  readonly props?: Readonly<Record<string, Tagged>>;
  readonly domain?: Tagged;
  readonly codomain?: Tagged;
  readonly tag?: string;
  readonly value?: unknown;
  readonly keys?: object;
  readonly predicate?: unknown;
}

/** Gives the type inside of those that only wrap one. */
export const unwrapped = (codec: Tagged): Tagged =>
  codec.type !== undefined && wrappers.has(codec._tag) ? unwrapped(codec.type) : codec;

/** The tags of types that only wrap one. */
export const wrappers: ReadonlySet<string | undefined> = new Set([
  ...['ExactType', 'RefinementType', 'ReadonlyType', 'RecursiveType'],
]);

/** The tags of types that no object or array fits. */
export const scalars: ReadonlySet<string | undefined> = new Set([
  ...['NullType', 'UndefinedType', 'VoidType', 'NeverType', 'StringType', 'NumberType', 'BooleanType', 'BigIntType'],
  ...['LiteralType', 'KeyofType'],
]);

/** Tells whether no object or array fits. */
export const isScalar = ({ _tag, type, types = [] }: Tagged): boolean => {
  if (_tag === 'UnionType') return types.every(isScalar);
  return scalars.has(_tag) || (type !== undefined && refining.has(_tag) && isScalar(type));
};

/** Tells whether `undefined` may fit; yes, where it would have to look further. */
export const mayTakeUndefined = ({ _tag, type, types = [], value }: Tagged): boolean => {
  if (_tag === 'LiteralType') return value === undefined;
  if (_tag === 'UnionType') return types.some(mayTakeUndefined);
  if (type !== undefined && refining.has(_tag)) return mayTakeUndefined(type);
  return takeUndefined.has(_tag);
};

const refining: ReadonlySet<string | undefined> = new Set(['RefinementType', 'ReadonlyType']);

const takeUndefined: ReadonlySet<string | undefined> = new Set([
  ...['UndefinedType', 'VoidType', 'UnknownType', 'AnyType', 'RecursiveType', 'IntersectionType'],
]);
