// The cost of one unit as the number of units grows (subscribers, windows, keys, bytes of a frame, frames a second), and the time to the first frame.
import { goal, interleaved, median, pairedRatio, report, ROUNDS, sample } from '../lib/bench.mjs';
import { sizeLabel } from '../support/payloads.mjs';

const run = (name, ...args) =>
  sample(new URL(`${name}.mjs`, import.meta.url), args, { nodeArgs: ['--expose-gc', '--no-warnings'] });
const few = Math.min(3, ROUNDS);

/** Measures every point a few times, and the two points that a goal compares in all rounds. */
const measured = async (title, points, compared, sampleOf) => {
  const of = (some, rounds, what) =>
    interleaved({
      title: `growth, ${title}${what}`,
      rounds,
      contenders: Object.fromEntries(some.map((point) => [point, () => sampleOf(point)])),
    });
  const others = points.filter((point) => !compared.includes(point));
  return { ...(await of(others, few, '')), ...(await of(compared, ROUNDS, ', compared')) };
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
  grown[name] = await measured(name, points, compared, (n) => run('operators', name, n));

const bytes = [64, 1_024, 16_384, 262_144, 1_048_576, 16_777_216];
const middle = 1_048_576;
const largest = bytes.at(-1);
const bySize = await measured('frame sizes', bytes, [middle, largest], (size) => run('sizes', size, 'text'));

const RATE_BYTES = 256;
const rates = [1_000, 10_000, 50_000, 100_000, 200_000];
const byRate = await measured('rates', rates, [], (rate) => run('rates', rate, RATE_BYTES));

const first = await measured('first frame', [], ['plain', 'tls'], (security) => run('first-frame', security));

const middleOf = (samples, read) => median(samples.map(read));
const figure = (value) => (value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(3));
const stages = ['ticket', 'handshake', 'frame', 'all'];

await report({
  bench: 'growth',
  command: 'npm run bench -- growth',
  goals: [
    ...lines.map(({ name, compared: [from, to], atMost, unit }) =>
      goal({
        id: `growth/${name}`,
        what: `CPU time of ${unit} at ${to} ${name} over that at ${from}`,
        ratio: pairedRatio(grown[name][to], grown[name][from], 'nsPerStep'),
        atMost,
      }),
    ),
    goal({
      id: 'growth/frame sizes',
      what: 'CPU time of a byte in frames of 16 MB over that in frames of 1 MB, as text',
      ratio: pairedRatio(bySize[largest], bySize[middle], 'nsPerByte'),
      atMost: 1.25,
    }),
    goal({
      id: 'growth/rates',
      what: 'CPU time of a frame at 200,000 a second over that at 10,000',
      ratio: pairedRatio(byRate[200_000], byRate[10_000], 'ns'),
      atMost: 1,
    }),
  ],
  tables: [
    ...lines.map(({ name, points, unit }) => ({
      title: `CPU time by ${name}, in ns`,
      columns: [name, 'a frame', unit],
      rows: points.map((n) => [
        n,
        ...['ns', 'nsPerStep'].map((key) => figure(middleOf(grown[name][n], (each) => each[key]))),
      ]),
    })),
    {
      title: 'CPU time by the size of a frame, as text, over loopback',
      columns: ['size', 'µs a frame', 'ns a byte', 'MB a second'],
      rows: bytes.map((size) => [
        size < 2 ** 20 ? sizeLabel(size) : `${size / 2 ** 20} MB`,
        figure(middleOf(bySize[size], ({ ns }) => ns / 1e3)),
        figure(middleOf(bySize[size], ({ nsPerByte }) => nsPerByte)),
        figure(middleOf(bySize[size], ({ megabytesPerSecond }) => megabytesPerSecond)),
      ]),
    },
    {
      title: `Share of a core by rate, frames of ${RATE_BYTES} B over loopback`,
      columns: ['frames a second', 'received', 'share of a core, %', 'ns a frame'],
      rows: rates.map((rate) => [
        rate,
        Math.round(middleOf(byRate[rate], (each) => each.rate)),
        figure(middleOf(byRate[rate], ({ share }) => share * 100)),
        figure(middleOf(byRate[rate], ({ ns }) => ns)),
      ]),
    },
    {
      title: 'From subscribing to the first frame over loopback, in ms: the first time in a process, and the second',
      columns: ['', ...stages],
      rows: ['plain', 'tls'].flatMap((security) =>
        ['cold', 'warm'].map((which) => [
          `${security}, ${which === 'cold' ? 'first' : 'second'}`,
          ...stages.map((stage) => figure(middleOf(first[security], (each) => each[which][stage]))),
        ]),
      ),
    },
  ],
  charts: [
    {
      id: 'growth-operators',
      title: 'CPU time of a frame by subscribers, windows and keys',
      kind: 'lines',
      x: 'how many',
      y: 'ns a frame',
      log: true,
      series: lines.map(({ name, points }) => ({
        name,
        points: points.map((n) => [n, middleOf(grown[name][n], ({ ns }) => ns)]),
      })),
    },
    {
      id: 'growth-sizes',
      title: 'CPU time of a frame by its size, as text',
      kind: 'lines',
      x: 'bytes',
      y: 'ns a frame',
      log: true,
      series: [{ name: 'tradeFeed$', points: bytes.map((size) => [size, middleOf(bySize[size], ({ ns }) => ns)]) }],
    },
    {
      id: 'growth-rates',
      title: `Share of a core by rate, frames of ${RATE_BYTES} B`,
      kind: 'lines',
      x: 'frames a second',
      y: '% of a core',
      log: true,
      series: [
        {
          name: 'tradeFeed$',
          points: rates.map((rate) => [
            middleOf(byRate[rate], (each) => each.rate),
            middleOf(byRate[rate], ({ share }) => share * 100),
          ]),
        },
      ],
    },
  ],
});
