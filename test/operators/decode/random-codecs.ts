import fc from 'fast-check';
import * as t from 'io-ts';

/** A codec, and documents for it: most are valid, or nearly valid. */
export interface Case {
  readonly codec: t.Mixed;
  readonly fitting: fc.Arbitrary<unknown>;
}

const words = ['a', 'b', 'kind', '__proto__', 'constructor', 'toString', '0', '', 'x'];
const word = fc.constantFrom(...words);
const number = fc.oneof(fc.constantFrom(0, -0, 1, -1, 1.5, 2 ** 53, -1e300), fc.integer());
const scalar = fc.oneof(word, number, fc.boolean(), fc.constant(null));

const constant = (codec: t.Mixed, fitting: fc.Arbitrary<unknown>): fc.Arbitrary<Case> =>
  fc.constant({ codec, fitting });

const Trimmed = new t.Type<string>(
  'Trimmed',
  t.string.is,
  (u, c) => (t.string.is(u) ? t.success(u.slice(1)) : t.failure(u, c)),
  t.identity,
);

// A literal -0 of io-ts turns the input 0 into -0.
const literal = fc.oneof(
  word,
  number.map((n) => n + 0),
  fc.boolean(),
);
const leaves: fc.Arbitrary<Case> = fc.oneof(
  constant(t.string, word),
  constant(t.number, number),
  constant(t.boolean, fc.boolean()),
  constant(t.null, fc.constant(null)),
  constant(t.undefined, fc.constant(undefined)),
  constant(t.void, fc.constant(undefined)),
  constant(t.unknown, scalar),
  constant(t.never as unknown as t.Mixed, scalar),
  constant(t.UnknownArray, fc.array(scalar, { maxLength: 2 })),
  constant(t.UnknownRecord, fc.dictionary(word, scalar, { maxKeys: 2 })),
  literal.map((value) => ({ codec: t.literal(value), fitting: fc.constant(value) })),
  fc.uniqueArray(word, { minLength: 1, maxLength: 20 }).map((names) => ({
    codec: t.keyof(Object.fromEntries(names.map((name) => [name, null]))),
    fitting: fc.constantFrom(...names),
  })),
);

const entriesOf = (part: fc.Arbitrary<Case>) =>
  fc.uniqueArray(fc.tuple(word, part), { maxLength: 3, selector: ([name]) => name });

/** Sometimes with an extra property. `__proto__` is an own property, as JSON.parse creates it. */
const object = (entries: readonly (readonly [string, Case])[], optional: boolean): fc.Arbitrary<object> =>
  fc
    .tuple(
      fc.dictionary(word, scalar, { maxKeys: 1 }),
      ...entries.map(([, { fitting }]) => fc.tuple(fitting, fc.boolean())),
    )
    .map(([extra, ...values]) => {
      const present = entries.flatMap(([name], n) =>
        optional && !values[n]![1] ? [] : [[name, values[n]![0]] as const],
      );
      return Object.fromEntries([...Object.entries(extra), ...present]);
    });

const propsOf = (entries: readonly (readonly [string, Case])[]): t.Props =>
  Object.fromEntries(entries.map(([name, { codec }]) => [name, codec]));

const members = (codecs: readonly Case[]) => codecs.map(({ codec }) => codec) as [t.Mixed, t.Mixed, ...t.Mixed[]];

/** A union, or only its first member if io-ts can't create one: it throws for a literal property `constructor`. */
const unionOf = (all: readonly Case[]): Case => {
  try {
    return { codec: t.union(members(all)), fitting: fc.oneof(...all.map(({ fitting }) => fitting)) };
  } catch {
    return all[0]!;
  }
};

/** Wrappers that don't change valid documents. */
const wrap = ({ codec, fitting }: Case): fc.Arbitrary<Case> =>
  fc
    .constantFrom<t.Mixed>(
      t.readonly(codec),
      t.refinement(codec, () => true),
      t.recursion(`Of<${codec.name}>`, () => codec),
    )
    .map((wrapper) => ({ codec: wrapper, fitting }));

const recursive = (part: fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  part.map(({ codec, fitting }) => ({
    codec: t.recursion(`Chain<${codec.name}>`, (self: t.Mixed): t.Mixed =>
      t.type({ value: codec, next: t.union([t.null, self]), all: t.array(self) }),
    ),
    fitting: fc.tuple(fitting, fitting, fc.nat(2)).map(([value, inside, n]) => {
      const leaf = { value: inside, next: null, all: [] };
      return { value, next: n === 0 ? null : leaf, all: n === 2 ? [leaf] : [] };
    }),
  }));

const composite = (part: fc.Arbitrary<Case>): fc.Arbitrary<Case> => {
  const listOf = (list: (of: t.Mixed) => t.Mixed) =>
    part.map(({ codec, fitting }) => ({ codec: list(codec), fitting: fc.array(fitting, { maxLength: 3 }) }));
  const objectOf = (type: (props: t.Props) => t.Mixed, optional: boolean) =>
    entriesOf(part).map((all) => ({ codec: type(propsOf(all)), fitting: object(all, optional) }));
  return fc.oneof(
    { weight: 3, arbitrary: objectOf((props) => t.type(props), false) },
    { weight: 2, arbitrary: objectOf((props) => t.partial(props), true) },
    listOf(t.array),
    listOf(t.readonlyArray),
    part.map(({ codec, fitting }) => ({
      codec: t.record(t.string, codec),
      fitting: fc.dictionary(word, fitting, { maxKeys: 3 }),
    })),
    fc.array(part, { maxLength: 3 }).map((all) => ({
      codec: t.tuple(members(all) as [t.Mixed, t.Mixed]),
      fitting: fc.tuple(...all.map(({ fitting }) => fitting)),
    })),
    { weight: 3, arbitrary: fc.array(part, { minLength: 2, maxLength: 4 }).map(unionOf) },
    fc.tuple(entriesOf(part), entriesOf(part)).map(([one, two]) => ({
      codec: t.intersection([t.type(propsOf(one)), t.partial(propsOf(two))]),
      fitting: object([...two, ...one], false),
    })),
    part.chain(wrap),
    recursive(part),
  );
};

/** Clones a codec with custom validation, as `withValidate` of io-ts-types does. */
const cloned = ({ codec, fitting }: Case): Case => {
  const validate: t.Validate<unknown, unknown> = (u, c) =>
    typeof u === 'string' || Array.isArray(u) ? t.failure(u, c) : (codec.validate(u, c) as t.Validation<unknown>);
  const clone = Object.assign(Object.create(Object.getPrototypeOf(codec) as object) as t.Mixed, codec, { validate });
  const decode = (u: unknown) => validate(u, [{ key: '', type: clone, actual: u }]);
  return { codec: Object.assign(clone, { decode }), fitting };
};

/** Codecs that may change their input. */
const changing = (part: fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  fc.oneof(
    constant(Trimmed, word),
    part.map(cloned),
    entriesOf(part).map((all) => ({ codec: t.strict(propsOf(all)), fitting: object(all, false) })),
    entriesOf(part).map((all) => ({ codec: t.exact(t.partial(propsOf(all))), fitting: object(all, true) })),
    part.map(({ codec, fitting }) => ({
      codec: t.record(t.keyof({ a: null, b: null }), codec),
      fitting: fc.record({ a: fitting, b: fitting, kind: word }, { requiredKeys: ['a', 'b'] }),
    })),
  );

const upTo = (depth: number, more: (part: fc.Arbitrary<Case>) => fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  depth === 0
    ? leaves
    : fc.oneof({ weight: 1, arbitrary: leaves }, { weight: 3, arbitrary: more(upTo(depth - 1, more)) });

/** Combinations of all kinds. */
export const cases = upTo(3, (part) =>
  fc.oneof({ weight: 5, arbitrary: composite(part) }, { weight: 1, arbitrary: changing(part) }),
);

/** Scalars, empty lists, empty objects and names of properties in JSON. */
const token = /"(?:[^"\\]|\\.)*":?|-?\d[\d.e+]*|true|false|null|\[\]|\{\}/g;

/** Replaces a part of a document, which may make it invalid. */
const near = (fitting: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.tuple(fitting, fc.nat(10_000), fc.oneof(scalar, fc.jsonValue({ maxDepth: 1 }))).map(([value, at, other]) => {
    const text = (JSON.stringify(value) as string | undefined) ?? 'null';
    const all = [...text.matchAll(token)].filter(([each]) => !each.endsWith(':'));
    const { index, 0: part } = all[at % all.length]!;
    return JSON.parse(text.slice(0, index) + JSON.stringify(other) + text.slice(index + part.length)) as unknown;
  });

/** Documents that are valid, nearly valid, or any JSON value. */
export const documentsFor = ({ fitting }: Case): fc.Arbitrary<unknown> =>
  fc
    .oneof({ weight: 4, arbitrary: fitting }, { weight: 4, arbitrary: near(fitting) }, fc.jsonValue({ maxDepth: 2 }))
    .map((value) => {
      const text = JSON.stringify(value) as string | undefined;
      return text === undefined ? null : (JSON.parse(text) as unknown);
    });
