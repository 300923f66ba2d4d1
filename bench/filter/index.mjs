// Filters before parsing: the CPU time of whereField and whereBytes over that of `JSON.parse(frame.text())`. One frame in a thousand is wanted.
import { goal, measured, medianOf, pairedRatio, report } from '../lib/bench.mjs';
import { sizeLabel } from '../support/payloads.mjs';
import { placements } from './transactions.mjs';

/** The largest ratio for each size. */
const most = { 250: 0.35, 1024: 0.2, 4096: 0.15, 16384: 0.08 };
const sizes = Object.keys(most).map(Number);
const fields = [
  'one value',
  'a list of 10,000',
  'a list of 10,000, ignoreCase',
  'a Set of 500',
  'a Set of 10,000',
  'a function',
];
const bytes = ['one needle', 'one needle, Buffer.includes', '500 needles'];
/** The ways that have the goals of `whereField`. */
const goals = fields.slice(0, 5);

const [front, ...others] = placements;
const cells = [
  ...sizes.flatMap((size) => ['JSON.parse', ...fields, ...bytes].map((way) => [way, size, front])),
  ...others.flatMap((place) =>
    [400, 1024, 4096].flatMap((size) => ['JSON.parse', 'one value', 'a Set of 500'].map((way) => [way, size, place])),
  ),
];
const samples = await measured({ title: 'filter', cells, file: new URL('sample.mjs', import.meta.url) });
const of = (way, size, place = front) => samples(way, size, place);
const ratioOf = (way, size, place = front) => pairedRatio(of(way, size, place), of('JSON.parse', size, place), 'ns');
const shown = ({ median }) => median.toFixed(2);

await report({
  bench: 'filter',
  goals: [
    ...goals.flatMap((way) =>
      sizes.map((size) =>
        goal({
          id: `filter/${way}/${size}`,
          what: `whereField, ${way} / JSON.parse, ${sizeLabel(size)}`,
          ratio: ratioOf(way, size),
          atMost: most[size],
        }),
      ),
    ),
    ...sizes.map((size) =>
      goal({
        id: `filter/needles/${size}`,
        what: `whereBytes, 500 needles / JSON.parse, ${sizeLabel(size)}`,
        ratio: ratioOf('500 needles', size),
        atMost: 1,
      }),
    ),
  ],
  tables: [
    {
      title: 'One frame in a thousand passes: CPU time over that of JSON.parse(frame.text())',
      columns: ['filter', ...sizes.map(sizeLabel)],
      rows: [
        ['JSON.parse, ns', ...sizes.map((size) => Math.round(medianOf(of('JSON.parse', size), 'ns')))],
        ...[...fields, ...bytes].map((way) => [way, ...sizes.map((size) => shown(ratioOf(way, size)))]),
      ],
    },
    {
      title: 'The field at another place, and among three others with its name',
      columns: ['filter', ...[400, 1024, 4096].map(sizeLabel)],
      rows: others.flatMap((place) =>
        ['one value', 'a Set of 500'].map((way) => [
          `${way}, ${place}`,
          ...[400, 1024, 4096].map((size) => shown(ratioOf(way, size, place))),
        ]),
      ),
    },
  ],
});
