// The cost of one unit as the number of units grows: subscribers, windows, keys, bytes of a frame, frames a second.
import { goal, measured, medianOf, pairedRatio, report, ROUNDS, sample } from '../lib/bench.mjs';
import { startSender } from '../support/child.mjs';
import { sizeLabel } from '../support/payloads.mjs';
import { receiveSample } from '../support/receiving.mjs';

const run = (file, ...args) => sample(new URL(file, import.meta.url), args);

/** Measures every point a few times, and the two points that a goal compares in all rounds. Returns a function from a point to its samples. */
const grow = async (title, points, compared, sampleOf) => {
  const cells = (isCompared) => points.filter((point) => compared.includes(point) === isCompared);
  const others = await measured({
    title: `growth, ${title}`,
    rounds: Math.min(3, ROUNDS),
    cells: cells(false),
    run: sampleOf,
  });
  const both = await measured({ title: `growth, ${title}, compared`, cells: cells(true), run: sampleOf });
  return (point) => both(point) ?? others(point);
};

/** A cost that grows linearly: one unit costs the same at the largest point as at the middle, except for misses of the CPU caches. */
const line = (name, unit, atMost, points, compared) => ({ name, unit, atMost, points, compared });
const lines = [
  line('subscribers', 'a frame and subscriber', 1.25, [1, 2, 4, 8, 16, 32, 64], [8, 64]),
  line('windows', 'a frame and window', 1.25, [1, 10, 100, 1_000, 10_000], [100, 10_000]),
  line('windows of frames', 'a frame and window', 1.5, [1, 10, 100, 1_000], [100, 1_000]),
  line('keys of conflate', 'a frame', 3, [1, 10, 100, 1_000, 10_000], [100, 10_000]),
  line('keys of an accumulator', 'a frame', 3, [1, 10, 100, 1_000, 10_000], [100, 10_000]),
];
const grown = {};
for (const { name, points, compared } of lines)
  grown[name] = await grow(name, points, compared, (n) => run('operators.mjs', name, n));

const bytes = [64, 1_024, 16_384, 262_144, 1_048_576, 16_777_216];
const middle = 1_048_576;
const largest = bytes.at(-1);
const sender = await startSender('flood-sender');
const origin = `ws://127.0.0.1:${sender.port}`;
const bySize = await grow('frame sizes', bytes, [middle, largest], (size) =>
  sample(receiveSample, ['ours', size, 'text', 'prices', 0, origin]),
);
await sender.stop();
/** The CPU time of a byte, in ns. */
const nsPerByte = ({ ns, size }) => ns / size;

const RATE_BYTES = 256;
const rates = [1_000, 10_000, 50_000, 100_000, 200_000];
const byRate = await grow('rates', rates, [], (rate) => run('rates.mjs', rate, RATE_BYTES));

const figure = (value) => (value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(3));
/** Returns the medians of some keys as cells of a table. */
const figures = (samples, ...keys) => keys.map((key) => figure(medianOf(samples, key)));
const percent = ({ share }) => share * 100;

await report({
  bench: 'growth',
  goals: [
    ...lines.map(({ name, compared: [from, to], atMost, unit }) =>
      goal({
        id: `growth/${name}`,
        what: `CPU time of ${unit} at ${to} ${name} over that at ${from}`,
        ratio: pairedRatio(grown[name](to), grown[name](from), 'nsPerStep'),
        atMost,
      }),
    ),
    goal({
      id: 'growth/frame sizes',
      what: 'CPU time of a byte in frames of 16 MB over that in frames of 1 MB, as text',
      ratio: pairedRatio(bySize(largest), bySize(middle), nsPerByte),
      atMost: 1.25,
    }),
    goal({
      id: 'growth/rates',
      what: 'CPU time of a frame at 200,000 a second over that at 10,000',
      ratio: pairedRatio(byRate(200_000), byRate(10_000), 'ns'),
      atMost: 1,
    }),
  ],
  tables: [
    ...lines.map(({ name, points, unit }) => ({
      title: `CPU time by ${name}, in ns`,
      columns: [name, 'a frame', unit],
      rows: points.map((n) => [n, ...figures(grown[name](n), 'ns', 'nsPerStep')]),
    })),
    {
      title: 'CPU time by the size of a frame, as text, over loopback',
      columns: ['size', 'µs a frame', 'ns a byte', 'MB a second'],
      rows: bytes.map((size) => [
        size < 2 ** 20 ? sizeLabel(size) : `${size / 2 ** 20} MB`,
        ...figures(bySize(size), ({ ns }) => ns / 1e3, nsPerByte, 'megabytesPerSecond'),
      ]),
    },
    {
      title: `Share of a core by rate, frames of ${RATE_BYTES} B over loopback`,
      columns: ['frames a second', 'received', 'share of a core, %', 'ns a frame'],
      rows: rates.map((rate) => [
        rate,
        Math.round(medianOf(byRate(rate), 'rate')),
        ...figures(byRate(rate), percent, 'ns'),
      ]),
    },
  ],
  charts: [
    {
      id: 'growth-operators',
      title: 'CPU time of a frame by subscribers, windows and keys',
      x: 'how many',
      y: 'ns a frame',
      series: lines.map(({ name, points }) => ({
        name,
        points: points.map((n) => [n, medianOf(grown[name](n), 'ns')]),
      })),
    },
    {
      id: 'growth-sizes',
      title: 'CPU time of a frame by its size, as text',
      x: 'bytes',
      y: 'ns a frame',
      series: [{ name: 'tradeFeed$', points: bytes.map((size) => [size, medianOf(bySize(size), 'ns')]) }],
    },
    {
      id: 'growth-rates',
      title: `Share of a core by rate, frames of ${RATE_BYTES} B`,
      x: 'frames a second',
      y: '% of a core',
      series: [
        {
          name: 'tradeFeed$',
          points: rates.map((rate) => [medianOf(byRate(rate), 'rate'), medianOf(byRate(rate), percent)]),
        },
      ],
    },
  ].map((chart) => ({ ...chart, kind: 'lines', log: true })),
});
