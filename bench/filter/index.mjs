// Filters before parsing: the CPU time of whereField and whereBytes over that of `JSON.parse(frame.text())`. One frame in a thousand is wanted.
import { goal, measured, medianOf, pairedRatio, report } from '../lib/bench.mjs';
import { sizeLabel } from '../support/payloads.mjs';

/** The largest ratio for each size. */
const most = { 250: 0.35, 1024: 0.2, 4096: 0.15, 16384: 0.08 };
const sizes = Object.keys(most).map(Number);
const fields = ['one value', 'a list of 10,000', 'a list of 10,000, ignoreCase', 'a Set of 500', 'a Set of 10,000'];
const bytes = ['one needle', '500 needles'];

const of = await measured({
  title: 'filter',
  cells: sizes.flatMap((size) => ['JSON.parse', ...fields, ...bytes].map((way) => [way, size])),
  file: new URL('sample.mjs', import.meta.url),
});
const ratioOf = (way, size) => pairedRatio(of(way, size), of('JSON.parse', size), 'ns');

report({
  bench: 'filter',
  goals: [
    ...fields.flatMap((way) =>
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
        ...[...fields, ...bytes].map((way) => [way, ...sizes.map((size) => ratioOf(way, size).median.toFixed(2))]),
      ],
    },
  ],
});
