import { allOf, anyOf, demand, isRecord, literal, quoted, type Writer } from './guard-text.js';
import { mayAcceptUndefined, type Tagged } from './tagged.js';
import { unionTags } from './union-tags.js';

/** Writes the statements of a type's function. The function tests `v`. */
export type Body = (codec: Required<Tagged>, writer: Writer) => readonly string[];

// The decoder reads the holes of an array, too.
const items: Body = ({ type }, { test }) => [
  demand('isArray(v)'),
  `for (let i = 0, n = v.length; i < n; i += 1) { const x = v[i]; ${demand(test(type, 'x'))} }`,
  'return true;',
];

// Each property is read once. The decoder adds a missing property that may be undefined, so such a document is refused.
const all: Body = ({ props }, { test }) => [
  demand(isRecord('v')),
  'let x;',
  ...Object.entries(props).map(([name, type]) => {
    const isPresent = mayAcceptUndefined(type) ? [`(x !== undefined || hasOwn.call(v, ${quoted(name)}))`] : [];
    return `x = v[${quoted(name)}]; ${demand(allOf([...isPresent, test(type, 'x')]))}`;
  }),
  'return true;',
];

const some: Body = ({ props }, { test }) => [
  demand(isRecord('v')),
  'let x;',
  ...Object.entries(props).map(
    ([name, type]) => `x = v[${quoted(name)}]; ${demand(anyOf(['x === undefined', test(type, 'x')]))}`,
  ),
  'return true;',
];

// The decoder cuts a longer array, and reads missing items as undefined.
const places: Body = ({ types }, { test }) => [
  demand(`isArray(v) && v.length <= ${types.length}`),
  'let x;',
  ...types.map((type, n) => `x = v[${n}]; ${demand(test(type, 'x'))}`),
  'return true;',
];

// io-ts accepts an array as a record of `any`.
const values: Body = ({ codomain }, { test }) => [
  `if (!${isRecord('v')}) return ${codomain._tag === 'AnyType' ? 'isArray(v)' : 'false'};`,
  `for (const key of keys(v)) { const x = v[key]; ${demand(test(codomain, 'x'))} }`,
  'return true;',
];

// Only the member with this tag is tested: the predicate of another member may throw on such a document.
const tagged: Body = (codec, writer) => [
  demand(isRecord('v')),
  `const x = v[${quoted(codec.tag)}];`,
  ...(unionTags(codec) ?? []).map(({ member, literals }) => {
    const hasTag = anyOf(literals.map((value) => `x === ${literal(value, writer)}`));
    return `if ${hasTag} return ${writer.test(member, 'v')};`;
  }),
  'return false;',
];

/** The types that are tested by a separate function. */
export const bodies: ReadonlyMap<string | undefined, Body> = new Map<string, Body>([
  ['RecursiveType', ({ type }, { test }) => [`return ${test(type, 'v')};`]],
  ['ArrayType', items],
  ['ReadonlyArrayType', items],
  ['InterfaceType', all],
  ['PartialType', some],
  ['TupleType', places],
  ['DictionaryType', values],
  ['TaggedUnionType', tagged],
]);
