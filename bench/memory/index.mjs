// The memory of held frames: bytes of buffers for each byte of payload, a queue after a million drops, and the cost of the copies.
import { goal, interleaved, isQuick, pairedRatio, report, ROUNDS, sample, summary } from '../lib/bench.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';
import { holders } from './holders.mjs';

const MAX_RATIO = 1.5;
const keeps = [1, 8, 64];
const run = (name, ...args) =>
  sample(new URL(`${name}.mjs`, import.meta.url), args, { nodeArgs: ['--expose-gc', '--no-warnings'] });
const oneOf = (keep) => (keep === 1 ? 'all' : `1 of ${keep}`);
const times = (ratio) => (ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2));

// Memory doesn't depend on the load: one sample of each size and holder, and several rounds of some of them.
const names = Object.keys(holders);
const matrix = await interleaved({
  title: 'memory, held',
  rounds: 1,
  contenders: Object.fromEntries(
    names.flatMap((name) => sizes.map((size) => [`${name} ${size}`, () => run('held', name, size, ...keeps)])),
  ),
});
const rowsOf = (name, size) => matrix[`${name} ${size}`][0].rows;

const few = ['control', 'tumblingWindow', 'conflate, rare keys and hot ones', 'mergeMapBounded', 'toReadable of bytes'];
const rounds = await interleaved({
  title: 'memory, 1 of 64',
  contenders: Object.fromEntries(few.map((name) => [name, () => run('held', name, 1024, 64)])),
});
const ratiosOf = (name) => summary(rounds[name].map(({ rows }) => rows[0].ratio));

const rings = {
  'bounded by count, 1 KB': ['1024', 10_000, 2 ** 30],
  'bounded by count, 200 B': ['200', 50_000, 2 ** 30],
  'bounded by bytes, 1 KB': ['1024', 10_000_000, 16_000_000],
  'bounded by bytes, 200 B': ['200', 10_000_000, 16_000_000],
};
const ring = await interleaved({
  title: 'memory, ring',
  rounds: Math.min(3, ROUNDS),
  contenders: Object.fromEntries(Object.entries(rings).map(([name, args]) => [name, () => run('ring', ...args)])),
});

const socket = await interleaved({
  title: 'memory, socket',
  rounds: 1,
  contenders: Object.fromEntries(
    ['control', 'tumblingWindow', 'mergeMapBounded'].flatMap((name) =>
      ['plain', 'tls'].map((security) => [`${name}, ${security}`, () => run('socket', name, 1024, 64, security)]),
    ),
  ),
});

const paid = [
  [200, 1],
  [1024, 1],
  [1024, 8],
];
const costs = await interleaved({
  title: 'memory, cost',
  contenders: Object.fromEntries(
    paid.flatMap(([size, keep]) =>
      ['none', 'stored'].map((kind) => [`${kind} ${size} ${keep}`, () => run('cost', kind, size, keep)]),
    ),
  ),
});
const costOf = (kind, size, keep) =>
  summary(
    costs[`${kind} ${size} ${keep}`].map(({ ns }, round) => (ns - costs[`none ${size} ${keep}`][round].ns) * keep),
  );

const operators = names.filter((name) => name !== 'control');
const worstOf = (name) => Math.max(...sizes.flatMap((size) => rowsOf(name, size).map(({ ratio }) => ratio)));
const growths = Object.keys(rings).map((name) => [name, summary(ring[name].map(({ growth }) => growth))]);

await report({
  bench: 'memory',
  command: 'npm run bench -- memory',
  goals: [
    ...operators.map((name) =>
      goal({
        id: `memory/held/${name}`,
        what: `bytes of buffers for each byte of payload, ${name}, worst of all sizes`,
        ratio: worstOf(name),
        atMost: MAX_RATIO,
      }),
    ),
    ...few
      .filter((name) => name !== 'control')
      .map((name) =>
        goal({
          id: `memory/rounds/${name}`,
          what: `the same, ${name}, 1 of 64 at 1 KB, over ${isQuick ? 'a few' : 'all'} rounds`,
          ratio: ratiosOf(name),
          atMost: MAX_RATIO,
        }),
      ),
    ...growths.map(([name, growth]) =>
      goal({
        id: `memory/ring/${name}`,
        what: `memory after a million drops over memory before, ${name}`,
        ratio: growth,
        atMost: 1.05,
      }),
    ),
    ...Object.keys(rings)
      .filter((name) => name.includes('by bytes'))
      .map((name) =>
        goal({
          id: `memory/bounds/${name}`,
          what: `bytes of buffers over capacityBytes, ${name}`,
          ratio: summary(ring[name].map(({ most }) => most)),
          atMost: 1.05,
        }),
      ),
  ],
  tables: [
    {
      title: 'Bytes of buffers for each byte of payload',
      columns: ['held by', ...sizes.flatMap((size) => keeps.map((keep) => `${sizeLabel(size)}, ${oneOf(keep)}`))],
      rows: names.map((name) => [
        name,
        ...sizes.flatMap((size) => rowsOf(name, size).map(({ ratio }) => times(ratio))),
      ]),
    },
    {
      title: 'Additional heap for each frame, in bytes: the frame, its Buffer, and the data of the holder',
      columns: ['held by', '200 B', '1 KB'],
      rows: names.map((name) => [name, ...[200, 1024].map((size) => Math.round(rowsOf(name, size)[0].heapPerFrame))]),
    },
    {
      title: 'A full queue after a million drops',
      columns: ['queue', 'growth of all memory', 'bytes of buffers, MB', 'of capacityBytes'],
      rows: growths.map(([name, { median, min, max }]) => [
        name,
        `${median.toFixed(3)} (${min.toFixed(3)} to ${max.toFixed(3)})`,
        (ring[name][0].points.at(-1).buffers / 1e6).toFixed(2),
        ring[name][0].most.toFixed(3),
      ]),
    },
    {
      title: 'From a real socket: bytes of buffers for each byte of payload, 1 of 64 at 1 KB',
      columns: ['held by', 'ratio'],
      rows: Object.entries(socket).map(([name, [{ ratio }]]) => [name, times(ratio)]),
    },
    {
      title: 'CPU time for each held frame, in ns, more than in an array',
      columns: ['', 'ns'],
      rows: paid.map(([size, keep]) => {
        const { median, min, max } = costOf('stored', size, keep);
        return [`${sizeLabel(size)}, ${oneOf(keep)}`, `${median.toFixed(0)} (${min.toFixed(0)} to ${max.toFixed(0)})`];
      }),
    },
  ],
  charts: [
    {
      id: 'memory-held',
      title: 'Memory for each held frame of 1 KB, if 1 of 64 is held',
      kind: 'bars',
      x: '',
      y: 'KB of buffers',
      log: false,
      series: [
        {
          name: 'held',
          points: names.map((name) => [name === 'control' ? 'without copies' : name, rowsOf(name, 1024)[2].ratio]),
        },
      ],
    },
    {
      id: 'memory-ring',
      title: 'Memory of a full queue while a million frames are dropped',
      kind: 'lines',
      x: 'frames dropped',
      y: 'MB',
      log: false,
      series: Object.keys(rings).map((name) => ({
        name,
        points: ring[name][0].points.map(({ dropped, buffers, heap }) => [dropped, (buffers + heap) / 1e6]),
      })),
    },
  ],
  facts: {
    'without copies': `${times(ratiosOf('control').median)} bytes of buffers for each byte, 1 of 64 at 1 KB`,
    'with copies': `${pairedRatio(rounds.control, rounds.tumblingWindow, ({ rows }) => rows[0].buffers).median.toFixed(0)} times less, in a window`,
  },
});
