import { allOf, anyOf, isRecord, literal, quoted, type Writer } from './guard-text.js';
import type { Tagged } from './tagged.js';

/** Writes the expression that tests the variable `x` for a type. */
export type Test = (codec: Required<Tagged>, x: string, writer: Writer) => string;

const always: Test = () => 'true';
const equal =
  (value: string): Test =>
  (_, x) =>
    `${x} === ${value}`;
const typed =
  (type: string): Test =>
  (_, x) =>
    `typeof ${x} === '${type}'`;

// Up to 16 names are compared one by one. More names are looked up in `keys`, as io-ts does for any number.
const key: Test = ({ keys }, x, { capture }) => {
  const names = Object.getOwnPropertyNames(keys);
  return names.length > 16
    ? `(typeof ${x} === 'string' && hasOwn.call(${capture(keys)}, ${x}))`
    : anyOf(names.map((name) => `${x} === ${quoted(name)}`));
};

/** The types that are tested by an expression in place. */
export const tests: ReadonlyMap<string | undefined, Test> = new Map<string, Test>([
  ['NullType', equal('null')],
  ['UndefinedType', equal('undefined')],
  ['VoidType', equal('undefined')],
  ['UnknownType', always],
  ['AnyType', always],
  ['NeverType', () => 'false'],
  ['StringType', typed('string')],
  ['NumberType', typed('number')],
  ['BooleanType', typed('boolean')],
  ['BigIntType', typed('bigint')],
  ['FunctionType', typed('function')],
  ['ObjectType', (_, x) => `(typeof ${x} === 'object' && ${x} !== null)`],
  ['AnyArrayType', (_, x) => `isArray(${x})`],
  ['AnyDictionaryType', (_, x) => isRecord(x)],
  ['LiteralType', ({ value }, x, writer) => `${x} === ${literal(value, writer)}`],
  ['KeyofType', key],
  ['ReadonlyType', ({ type }, x, { test }) => test(type, x)],
  [
    'RefinementType',
    ({ type, predicate }, x, { test, capture }) => `(${test(type, x)} && ${capture(predicate)}(${x}))`,
  ],
  ['UnionType', ({ types }, x, { test }) => anyOf(types.map((type) => test(type, x)))],
  ['IntersectionType', ({ types }, x, { test }) => allOf(types.map((type) => test(type, x)))],
]);
