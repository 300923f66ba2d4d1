// The costs of single steps: creating a frame, reading it, an operator of RxJS, and checking a transaction, next to JSON.parse and bare RxJS.
import { goal, measured, medianOf, pairedRatio, report } from '../lib/bench.mjs';
import { sizeLabel } from '../support/payloads.mjs';

const fixed = [
  ...['an empty turn', 'new Frame', 'a literal'],
  ...['a Subject', 'a Subject, six operators', 'a Subject, shareFeed'],
];
const read = ['isUtf8', 'toString', 'text()', 'json()', 'JSON.parse'];
const sizes = [200, 1024, 4096];
const parse = 'JSON.parse of its text';
const onlyRead = 'an operator that only reads: map';
const decoded = [parse, 'io-ts, codec.decode', 'io-ts, codec.is', onlyRead, 'decodeWith'];

const of = await measured({
  title: 'micro',
  cells: [
    ...[...fixed, ...decoded].map((what) => [what]),
    ...sizes.flatMap((size) => read.map((what) => [what, size])),
  ],
  file: new URL('sample.mjs', import.meta.url),
});
const nsOf = (...cell) => Number(medianOf(of(...cell), 'ns').toPrecision(3));

// The cost of an operator minus the cost of one that only does a part of it.
const added = (over, under) => of(over).map(({ ns }, round) => ({ ns: ns - of(under)[round].ns }));
const ofDecodeWith = added('decodeWith', onlyRead);
const ofOperators = added('a Subject, six operators', 'a Subject');

report({
  bench: 'micro',
  goals: [
    goal({
      id: 'micro/decode/operator-of-parse',
      what: 'the cost that decodeWith adds to an operator that only reads / its JSON.parse',
      ratio: pairedRatio(ofDecodeWith, of(parse), 'ns'),
      atMost: 0.4,
    }),
    goal({
      id: 'micro/decode/faster-than-decode',
      what: 'codec.decode of a transaction / the cost that decodeWith adds',
      ratio: pairedRatio(of('io-ts, codec.decode'), ofDecodeWith, 'ns'),
      atLeast: 1.2,
    }),
  ],
  tables: [
    {
      title: 'Reading a payload: CPU time, ns',
      columns: ['what', ...sizes.map(sizeLabel)],
      rows: read.map((what) => [what, ...sizes.map((size) => nsOf(what, size))]),
    },
    {
      title: 'Independent of the payload: CPU time, ns',
      columns: ['what', 'ns'],
      rows: fixed.map((what) => [what, nsOf(what)]),
    },
    {
      title: 'A valid transaction of 200 B with 7 fields: CPU time, and its share of JSON.parse',
      columns: ['way', 'ns', 'of JSON.parse', 'min', 'max'],
      rows: decoded.map((way) => {
        const { median, min, max } = pairedRatio(of(way), of(parse), 'ns');
        return [way, medianOf(of(way), 'ns'), median, min, max];
      }),
    },
  ],
  facts: { 'an operator of RxJS adds': `${(medianOf(ofOperators, 'ns') / 6).toFixed(1)} ns` },
});
