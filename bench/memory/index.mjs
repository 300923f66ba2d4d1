// The memory of held frames: bytes of buffers for each byte of payload, and a queue after a million drops. `held` measures the time of the copies.
import { goal, isQuick, measured, pairedRatio, report, ROUNDS, sample, spreadOf } from '../lib/bench.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';
import { holders } from './holders.mjs';

const MAX_RATIO = 1.5;
const keeps = [1, 8, 64];
const run = (...args) => sample(new URL('sample.mjs', import.meta.url), args);
const oneOf = (keep) => (keep === 1 ? 'all' : `1 of ${keep}`);
const times = (ratio) => (ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2));

// Memory doesn't depend on the load: one sample of each size and holder, and several rounds of some of them.
const names = Object.keys(holders);
const matrix = await measured({
  title: 'memory, held',
  rounds: 1,
  cells: names.flatMap((name) => sizes.map((size) => [name, size])),
  run: (name, size) => run('held', name, size, ...keeps),
});
const rowsOf = (name, size) => matrix(name, size)[0].rows;

const few = ['tumblingWindow', 'conflate, rare keys and hot ones', 'mergeMapBounded', 'toReadable of bytes'];
const oneOfMany = await measured({
  title: 'memory, 1 of 64',
  cells: ['control', ...few],
  run: (name) => run('held', name, 1024, 64),
});
const ratiosOf = (name) => spreadOf(oneOfMany(name), ({ rows }) => rows[0].ratio);

const rings = {
  'bounded by count, 1 KB': [1024, 10_000, 2 ** 30],
  'bounded by count, 200 B': [200, 50_000, 2 ** 30],
  'bounded by bytes, 1 KB': [1024, 10_000_000, 16_000_000],
  'bounded by bytes, 200 B': [200, 10_000_000, 16_000_000],
};
const queues = Object.keys(rings);
const ring = await measured({
  title: 'memory, ring',
  rounds: Math.min(3, ROUNDS),
  cells: queues,
  run: (queue) => run('ring', ...rings[queue]),
});

const sockets = ['control', 'tumblingWindow', 'mergeMapBounded'].flatMap((name) => [
  [name, 'plain'],
  [name, 'tls'],
]);
const socket = await measured({
  title: 'memory, socket',
  rounds: 1,
  cells: sockets,
  run: (name, security) => run('socket', name, 1024, 64, security),
});

const operators = names.filter((name) => name !== 'control');
const worstOf = (name) => Math.max(...sizes.flatMap((size) => rowsOf(name, size).map(({ ratio }) => ratio)));

await report({
  bench: 'memory',
  goals: [
    ...operators.map((name) =>
      goal({
        id: `memory/held/${name}`,
        what: `bytes of buffers for each byte of payload, ${name}, worst of all sizes`,
        ratio: worstOf(name),
        atMost: MAX_RATIO,
      }),
    ),
    ...few.map((name) =>
      goal({
        id: `memory/rounds/${name}`,
        what: `the same, ${name}, 1 of 64 at 1 KB, over ${isQuick ? 'a few' : 'all'} rounds`,
        ratio: ratiosOf(name),
        atMost: MAX_RATIO,
      }),
    ),
    ...queues.map((name) =>
      goal({
        id: `memory/ring/${name}`,
        what: `memory after a million drops over memory before, ${name}`,
        ratio: spreadOf(ring(name), 'growth'),
        atMost: 1.05,
      }),
    ),
    ...queues
      .filter((name) => name.includes('by bytes'))
      .map((name) =>
        goal({
          id: `memory/bounds/${name}`,
          what: `bytes of buffers over capacityBytes, ${name}`,
          ratio: spreadOf(ring(name), 'most'),
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
      rows: queues.map((name) => {
        const { median, min, max } = spreadOf(ring(name), 'growth');
        const [{ buffers, most }] = ring(name);
        const growth = `${median.toFixed(3)} (${min.toFixed(3)} to ${max.toFixed(3)})`;
        return [name, growth, (buffers / 1e6).toFixed(2), most.toFixed(3)];
      }),
    },
    {
      title: 'From a real socket: bytes of buffers for each byte of payload, 1 of 64 at 1 KB',
      columns: ['held by', 'ratio'],
      rows: sockets.map((cell) => [cell.join(', '), times(socket(...cell)[0].ratio)]),
    },
  ],
  facts: {
    'without copies': `${times(ratiosOf('control').median)} bytes of buffers for each byte, 1 of 64 at 1 KB`,
    'with copies': `${pairedRatio(oneOfMany('control'), oneOfMany('tumblingWindow'), ({ rows }) => rows[0].buffers).median.toFixed(0)} times less, in a window`,
  },
});
