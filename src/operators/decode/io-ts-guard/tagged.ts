/** The documented fields of an io-ts type: its tag and its parts. */
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

/** Returns the type inside all types that only wrap another one. */
export const unwrapped = (codec: Tagged): Tagged =>
  codec.type !== undefined && wrappers.has(codec._tag) ? unwrapped(codec.type) : codec;

/** The tags of types that only wrap another type. */
export const wrappers: ReadonlySet<string | undefined> = new Set([
  ...['ExactType', 'RefinementType', 'ReadonlyType', 'RecursiveType'],
]);

/** The tags of types that accept no object and no array. */
export const scalars: ReadonlySet<string | undefined> = new Set([
  ...['NullType', 'UndefinedType', 'VoidType', 'NeverType', 'StringType', 'NumberType', 'BooleanType', 'BigIntType'],
  ...['LiteralType', 'KeyofType'],
]);

/** Returns whether a type accepts no object and no array. */
export const isScalar = ({ _tag, type, types = [] }: Tagged): boolean => {
  if (_tag === 'UnionType') return types.every(isScalar);
  return scalars.has(_tag) || (type !== undefined && refining.has(_tag) && isScalar(type));
};

/** Returns whether a type may accept `undefined`. Also `true` for types whose parts it does not check. */
export const mayAcceptUndefined = ({ _tag, type, types = [], value }: Tagged): boolean => {
  if (_tag === 'LiteralType') return value === undefined;
  if (_tag === 'UnionType') return types.some(mayAcceptUndefined);
  if (type !== undefined && refining.has(_tag)) return mayAcceptUndefined(type);
  return acceptUndefined.has(_tag);
};

const refining: ReadonlySet<string | undefined> = new Set(['RefinementType', 'ReadonlyType']);

const acceptUndefined: ReadonlySet<string | undefined> = new Set([
  ...['UndefinedType', 'VoidType', 'UnknownType', 'AnyType', 'RecursiveType', 'IntersectionType'],
]);
