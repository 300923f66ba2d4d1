// One sample: the CPU time of one way to check a transaction of 12 fields, in ns for each document.
import { type } from 'arktype';
import { isRight } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { map, Subject } from 'rxjs';
import { z } from 'zod';
import { decodeWith, Frame } from '../../dist/index.js';
import { cpuNs } from '../support/cpu.mjs';

const kinds = ['legacy', 'eip1559', 'blob'];

const codec = t.type({
  hash: t.string,
  from: t.string,
  to: t.union([t.string, t.null]),
  value: t.string,
  nonce: t.number,
  gas: t.number,
  gasPrice: t.string,
  type: t.keyof(Object.fromEntries(kinds.map((kind) => [kind, null]))),
  chainId: t.literal(1),
  input: t.string,
  pending: t.boolean,
  seenAt: t.number,
});

const zodSchema = z.object({
  hash: z.string(),
  from: z.string(),
  to: z.string().nullable(),
  value: z.string(),
  nonce: z.number(),
  gas: z.number(),
  gasPrice: z.string(),
  type: z.enum(kinds),
  chainId: z.literal(1),
  input: z.string(),
  pending: z.boolean(),
  seenAt: z.number(),
});

const arkSchema = type({
  hash: 'string',
  from: 'string',
  to: 'string | null',
  value: 'string',
  nonce: 'number',
  gas: 'number',
  gasPrice: 'string',
  type: "'legacy' | 'eip1559' | 'blob'",
  chainId: '1',
  input: 'string',
  pending: 'boolean',
  seenAt: 'number',
});

/** JSON Schema for ajv, which is measured only if it is installed. */
const jsonSchema = {
  type: 'object',
  required: Object.keys(codec.props),
  properties: {
    ...Object.fromEntries(['hash', 'from', 'value', 'gasPrice', 'input'].map((name) => [name, { type: 'string' }])),
    ...Object.fromEntries(['nonce', 'gas', 'seenAt'].map((name) => [name, { type: 'number' }])),
    to: { type: ['string', 'null'] },
    type: { enum: kinds },
    chainId: { const: 1 },
    pending: { type: 'boolean' },
  },
};

const hex = (digits, n) => `0x${((n * 2_654_435_761) >>> 0).toString(16).padStart(8, '0').repeat(8).slice(0, digits)}`;
const transaction = (n) => ({
  hash: hex(64, n),
  from: hex(40, n + 1),
  to: n % 16 === 0 ? null : hex(40, n + 2),
  value: String(n * 1_234_567_891),
  nonce: n,
  gas: 21_000 + n,
  gasPrice: String(30_000_000_000 + n),
  type: kinds[n % 3],
  chainId: 1,
  input: `0xa9059cbb${hex(64, n + 3).slice(2)}${hex(64, n + 4).slice(2)}`,
  pending: n % 2 === 0,
  seenAt: 1_763_671_234_567 + n,
});

const count = 256;
const texts = Array.from({ length: count }, (_, n) => JSON.stringify(transaction(n)));
const documents = texts.map((text) => JSON.parse(text));

// The value is parsed before the loop, so only the operator is measured.
const parsed = documents.map((document) =>
  Object.assign(new Frame('raw', Buffer.alloc(0), false, 0, 1), { json: () => document }),
);
const received = texts.map((text) => new Frame('raw', Buffer.from(text), false, 0, 1));

const through = (operator, frames) => {
  const source = new Subject();
  let values = 0;
  source.pipe(operator).subscribe(() => (values += 1));
  return (n) => {
    const before = values;
    source.next(frames[n]);
    return values > before;
  };
};
const json = map((frame) => frame.json());

const ajvGuard = async () => {
  const { default: ajv } = await import('ajv');
  return new (ajv.default ?? ajv)().compile(jsonSchema);
};

const over = (guard) => (n) => guard(documents[n]);

/** What is measured: a function that creates it, and the number of documents of a sample. */
const ways = {
  parse: [() => (n) => typeof JSON.parse(texts[n]) === 'object', 300_000],
  'io-ts decode': [() => over((document) => isRight(codec.decode(document))), 500_000],
  'io-ts is': [() => over((document) => codec.is(document)), 1_000_000],
  'zod safeParse': [() => over((document) => zodSchema.safeParse(document).success), 1_000_000],
  'arktype allows': [() => over((document) => arkSchema.allows(document)), 4_000_000],
  'ajv validate': [async () => over(await ajvGuard()), 4_000_000],
  map: [() => through(json, parsed), 3_000_000],
  decodeWith: [() => through(decodeWith(codec), parsed), 3_000_000],
  'map, from bytes': [() => through(json, received), 200_000],
  'decodeWith, from bytes': [() => through(decodeWith(codec), received), 200_000],
};

const [create, total] = ways[process.argv[2]];
const isValid = await create();
const run = (rounds) => {
  let valid = 0;
  for (let round = 0; round < rounds; round += 1) for (let n = 0; n < count; n += 1) if (isValid(n)) valid += 1;
  if (valid !== rounds * count) throw new Error(`${process.argv[2]}: ${valid} of ${rounds * count} are valid`);
};

const rounds = Math.ceil(total / count);
run(Math.ceil(rounds / 4));
const before = cpuNs();
run(rounds);
console.log(JSON.stringify({ nsPerDocument: cpuNs(before) / (rounds * count) }));
