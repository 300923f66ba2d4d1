// One sample: the CPU time of one step, in ns. `node bench/micro/sample.mjs <what> [size]`. `size` is that of a payload that is read; what is
// decoded has 12 fields.
import { AsyncLocalStorage } from 'node:async_hooks';
import { isUtf8 } from 'node:buffer';
import { isRight } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { filter, map, Subject } from 'rxjs';
import { decodeWith, Frame, shareFeed } from '../../dist/index.js';
import { cpuNs } from '../support/cpu.mjs';
import { payloads } from '../support/payloads.mjs';

const [what, size = '200'] = process.argv.slice(2);
const COUNT = 64;
const data = payloads(Number(size), COUNT);
const texts = data.map(String);
const framesOf = (buffers) => buffers.map((each) => new Frame('market', each, false, 1, 1));
const frames = framesOf(data);

/** The fields of a transaction, each with its type as ArkType writes it. */
const fields = {
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
};
const kinds = ['legacy', 'eip1559', 'blob'];
const fieldsOf = (types) =>
  Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, types[name] ?? types[type]]));

const codec = t.type(
  fieldsOf({
    ...{ string: t.string, number: t.number, boolean: t.boolean, chainId: t.literal(1) },
    to: t.union([t.string, t.null]),
    type: t.keyof(Object.fromEntries(kinds.map((kind) => [kind, null]))),
  }),
);
const zodSchema = (z) =>
  z.object(
    fieldsOf({
      ...{ string: z.string(), number: z.number(), boolean: z.boolean(), chainId: z.literal(1) },
      ...{ to: z.string().nullable(), type: z.enum(kinds) },
    }),
  );

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
const transactions = Array.from({ length: COUNT }, (_, n) => JSON.stringify(transaction(n)));
const documents = transactions.map((text) => JSON.parse(text));
const received = framesOf(transactions.map((text) => Buffer.from(text)));
// The value is parsed before the clock starts, so only the operator is measured.
const parsed = framesOf(data).map((frame, n) => Object.assign(frame, { json: () => documents[n] }));

// Stored, as a consumer may do: the optimizer can remove an object that isn't stored.
const stored = new Array(COUNT);
const store = (n, value) => {
  stored[n] = value;
  return n;
};
const through = (pipe, input = frames) => {
  const source = new Subject();
  let seen = 0;
  source.pipe(...pipe).subscribe(() => (seen += 1));
  return (n) => {
    const before = seen;
    source.next(input[n]);
    if (seen === before) throw new Error(`${what}: nothing was emitted for number ${n}.`);
    return seen;
  };
};
const checked = (isValid) => (n) => {
  if (!isValid(documents[n])) throw new Error(`${what}: number ${n} is not valid.`);
  return n;
};
const json = map((frame) => frame.json());

/** Each returns a function from a number to a number. The sum of its results keeps the optimizer from removing the work. */
const steps = {
  'an empty turn': () => (n) => n,
  'new Frame': () => (n) => store(n, new Frame('market', data[n], false, n, 1)),
  'a literal': () => (n) =>
    store(n, { type: 'frame', feed: 'market', data: data[n], isBinary: false, receivedAt: n, connection: 1 }),
  'a view': () => (n) => store(n, data[n].subarray(1)),
  isUtf8: () => (n) => Number(isUtf8(data[n])),
  toString: () => (n) => data[n].toString().length,
  'text()': () => (n) => frames[n].text().length,
  'json()': () => (n) => Object.keys(frames[n].json()).length,
  'JSON.parse': () => (n) => Object.keys(JSON.parse(texts[n])).length,
  'a Subject': () => through([]),
  'a Subject, one operator': () => through([map((frame) => frame)]),
  'a Subject, six operators': () =>
    through(Array.from({ length: 3 }, () => [map((frame) => frame), filter((frame) => frame.connection > 0)]).flat()),
  'a Subject, shareFeed': () => through([shareFeed()]),
  'a Subject, shareFeed, in a request': () => new AsyncLocalStorage().run({}, () => through([shareFeed()])),
  'JSON.parse of its text': () => (n) => Number(typeof JSON.parse(transactions[n]) === 'object'),
  'io-ts, codec.decode': () => checked((document) => isRight(codec.decode(document))),
  'io-ts, codec.is': () => checked((document) => codec.is(document)),
  'zod, safeParse': async () => {
    const schema = zodSchema((await import('zod')).z);
    return checked((document) => schema.safeParse(document).success);
  },
  'arktype, allows': async () => {
    const schema = (await import('arktype')).type(fields);
    return checked((document) => schema.allows(document));
  },
  'an operator that only reads: map': () => through([json], parsed),
  decodeWith: () => through([decodeWith(codec)], parsed),
  'bytes, text and JSON: map': () => through([json], received),
  'bytes, text and JSON: decodeWith': () => through([decodeWith(codec)], received),
};

const step = await steps[what]();
let sum = 0;
const turns = (count) => {
  for (let turn = 0; turn < count; turn += COUNT) for (let n = 0; n < COUNT; n += 1) sum += step(n);
};

// Doubles the number of turns until they take long enough. This is the warm-up as well.
let count = 1 << 12;
for (let spent = 0; spent < 100e6; count *= 2) {
  const before = cpuNs();
  turns(count);
  spent = cpuNs(before);
}
const before = cpuNs();
turns(count);
console.log(JSON.stringify({ what, ns: cpuNs(before) / count, sum }));
