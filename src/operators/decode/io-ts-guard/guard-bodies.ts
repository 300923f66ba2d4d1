import { allOf, anyOf, demand, isRecord, literal, quoted, type Writer } from './guard-text.js';
import { mayTakeUndefined, type Tagged } from './tagged.js';
import { unionTags } from './union-tags.js';

/** Writes the statements of the function for a type, which tests `v`. */
export type Body = (codec: Required<Tagged>, writer: Writer) => readonly string[];

// The decoder reads the holes of a list, too.
const items: Body = ({ type }, { test }) => [
  demand('isArray(v)'),
  `for (let i = 0, n = v.length; i < n; i += 1) { const x = v[i]; ${demand(test(type, 'x'))} }`,
  'return true;',
];

// A property is read once. One that is missing, and may be undefined, is added by the decoder.
const all: Body = ({ props }, { test }) => [
  demand(isRecord('v')),
  'let x;',
  ...Object.entries(props).map(([name, type]) => {
    const there = mayTakeUndefined(type) ? [`(x !== undefined || own.call(v, ${quoted(name)}))`] : [];
    return `x = v[${quoted(name)}]; ${demand(allOf([...there, test(type, 'x')]))}`;
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

// The decoder cuts what is longer, and takes what is missing for undefined.
const places: Body = ({ types }, { test }) => [
  demand(`isArray(v) && v.length <= ${types.length}`),
  'let x;',
  ...types.map((type, n) => `x = v[${n}]; ${demand(test(type, 'x'))}`),
  'return true;',
];

// io-ts takes a list for a record of anything.
const values: Body = ({ codomain }, { test }) => [
  `if (!${isRecord('v')}) return ${codomain._tag === 'AnyType' ? 'isArray(v)' : 'false'};`,
  `for (const key of keys(v)) { const x = v[key]; ${demand(test(codomain, 'x'))} }`,
  'return true;',
];

// One member is asked: another's predicates may not bear what is not meant for them.
const tagged: Body = (codec, writer) => [
  demand(isRecord('v')),
  `const x = v[${quoted(codec.tag)}];`,
  ...(unionTags(codec) ?? []).map(({ member, literals }) => {
    const isIts = anyOf(literals.map((value) => `x === ${literal(value, writer)}`));
    return `if ${isIts} return ${writer.test(member, 'v')};`;
  }),
  'return false;',
];

/** The types that have a function of their own. */
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
