// The cost of checking a valid transaction of 12 fields, compared with JSON.parse and with other packages.
import { goal, interleaved, median, pairedRatio, sample } from '../lib/bench.mjs';

const file = new URL('decode-sample.mjs', import.meta.url);

/** The names of `decode-sample.mjs`. */
const always = {
  parse: 'JSON.parse of its text',
  'io-ts decode': 'io-ts, codec.decode',
  'io-ts is': 'io-ts, codec.is',
  'zod safeParse': 'zod, safeParse',
  'arktype allows': 'arktype, allows',
  map: 'an operator that only reads: map',
  decodeWith: 'decodeWith',
  'map, from bytes': 'bytes, text and JSON: map',
  'decodeWith, from bytes': 'bytes, text and JSON: decodeWith',
};
const ifInstalled = { 'ajv validate': 'ajv, validate' };

const isInstalled = () => {
  try {
    return import.meta.resolve('ajv') !== undefined;
  } catch {
    return false;
  }
};

const key = 'nsPerDocument';

// The cost of an operator minus the cost of one that only reads the frame.
const added = (over, under) => over.map((each, round) => ({ [key]: each[key] - under[round][key] }));

/** Measures the ways to check a document. Returns the goals and the table of the report. */
export const decodeBench = async ({ rounds } = {}) => {
  const names = { ...always, ...(isInstalled() && ifInstalled) };
  const contenders = Object.fromEntries(Object.keys(names).map((name) => [name, () => sample(file, [name])]));
  const samples = await interleaved({ contenders, ...(rounds && { rounds }), title: 'decode' });
  const ratio = (over, under) => pairedRatio(samples[over], samples[under], key);
  const goals = [
    goal({
      id: 'micro/decode/operator-of-parse',
      what: 'the cost that decodeWith adds to an operator that only reads / its JSON.parse',
      ratio: pairedRatio(added(samples.decodeWith, samples.map), samples.parse, key),
      atMost: 0.4,
    }),
    goal({
      id: 'micro/decode/faster-than-decode',
      what: 'codec.decode of a transaction / the cost that decodeWith adds',
      ratio: pairedRatio(samples['io-ts decode'], added(samples.decodeWith, samples.map), key),
      atLeast: 1.2,
    }),
  ];
  const rows = Object.entries(names).map(([name, label]) => {
    const { median: ofParse, min, max } = ratio(name, 'parse');
    return [label, median(samples[name].map((each) => each[key])), ofParse, min, max];
  });
  const tables = [
    {
      title: 'A valid transaction of 12 fields: CPU time, and its share of JSON.parse',
      columns: ['way', 'ns', 'of JSON.parse', 'min', 'max'],
      rows,
    },
  ];
  return { goals, tables };
};
