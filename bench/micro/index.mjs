// The costs of single steps: creating a frame, reading it, an operator of RxJS, and decoding.
import { interleaved, median, report, sample } from '../lib/bench.mjs';
import { sizeLabel } from '../support/payloads.mjs';
import { decodeBench } from './decode.mjs';

const file = new URL('cost-sample.mjs', import.meta.url);
const fixed = [
  'an empty turn',
  'new Frame',
  'a literal',
  'a view',
  'a Subject',
  'a Subject, one operator',
  'a Subject, six operators',
];
const read = ['isUtf8', 'toString', 'text()', 'json()', 'JSON.parse'];
const sizes = [200, 1024, 4096];

const all = [...fixed.map((what) => [what, 200]), ...sizes.flatMap((size) => read.map((what) => [what, size]))];
const idOf = (what, size) => `${what} ${size}`;
const samples = await interleaved({
  title: 'micro',
  contenders: Object.fromEntries(all.map(([what, size]) => [idOf(what, size), () => sample(file, [what, size])])),
});
const nsOf = (what, size) => Number(median(samples[idOf(what, size)].map(({ ns }) => ns)).toPrecision(3));

const decode = await decodeBench();

const operators = samples[idOf('a Subject', 200)].map(({ ns }, round) => ({
  ns: (samples[idOf('a Subject, six operators', 200)][round].ns - ns) / 6,
}));

await report({
  bench: 'micro',
  command: 'npm run bench -- micro',
  goals: decode.goals,
  tables: [
    {
      title: 'Reading a payload: CPU time, ns',
      columns: ['what', ...sizes.map(sizeLabel)],
      rows: read.map((what) => [what, ...sizes.map((size) => nsOf(what, size))]),
    },
    {
      title: 'Independent of the payload: CPU time, ns',
      columns: ['what', 'ns'],
      rows: fixed.map((what) => [what, nsOf(what, 200)]),
    },
    ...(decode.tables ?? []),
  ],
  charts: decode.charts ?? [],
  facts: { 'an operator of RxJS adds': `${median(operators.map(({ ns }) => ns)).toFixed(1)} ns`, ...decode.facts },
});
