// The memory of held frames: bytes of buffers for each byte of payload, and a queue after a million drops.
import { goal, measured, report, ROUNDS, sample, spreadOf } from '../lib/bench.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';
import { holders } from './holders.mjs';

/** A holder gets all frames that are read, or one of so many. */
const keeps = [1, 8, 64];
const run = (...args) => sample(new URL('sample.mjs', import.meta.url), args);
const times = (ratio) => (ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2));

// Memory doesn't depend on the load of the machine: one sample of each size and holder.
const names = Object.keys(holders);
const held = await measured({
  title: 'memory, held',
  rounds: 1,
  cells: names.flatMap((name) => sizes.map((size) => [name, size])),
  run: (name, size) => run('held', name, size, ...keeps),
});
const rowsOf = (name, size) => held(name, size)[0].rows;
const worstOf = (name) => Math.max(...sizes.flatMap((size) => rowsOf(name, size).map(({ ratio }) => ratio)));

const queues = {
  'bounded by count, 1 KB': [1024, 10_000, 2 ** 30],
  'bounded by count, 200 B': [200, 50_000, 2 ** 30],
  'bounded by bytes, 1 KB': [1024, 10_000_000, 16_000_000],
  'bounded by bytes, 200 B': [200, 10_000_000, 16_000_000],
};
const full = await measured({
  title: 'memory, full queues',
  rounds: Math.min(3, ROUNDS),
  cells: Object.keys(queues),
  run: (queue) => run('ring', ...queues[queue]),
});
const queueGoal = (id, what, name, key) =>
  goal({ id: `memory/${id}/${name}`, what: `${what}, ${name}`, ratio: spreadOf(full(name), key), atMost: 1.05 });

report({
  bench: 'memory',
  goals: [
    ...names
      .filter((name) => name !== 'control')
      .map((name) =>
        goal({
          id: `memory/held/${name}`,
          what: `bytes of buffers for each byte of payload, ${name}, worst of all sizes`,
          ratio: worstOf(name),
          atMost: 1.5,
        }),
      ),
    ...Object.keys(queues).map((name) =>
      queueGoal('ring', 'memory after a million drops over memory before', name, 'growth'),
    ),
    ...Object.keys(queues)
      .filter((name) => name.includes('by bytes'))
      .map((name) => queueGoal('bounds', 'bytes of buffers over capacityBytes', name, 'most')),
  ],
  tables: [
    {
      title: `Bytes of buffers for each byte of payload, of frames of which all, 1 of 8 and 1 of 64 are held`,
      columns: ['held by', ...sizes.map(sizeLabel)],
      rows: names.map((name) => [
        name,
        ...sizes.map((size) =>
          rowsOf(name, size)
            .map(({ ratio }) => times(ratio))
            .join(', '),
        ),
      ]),
    },
    {
      title: 'Additional heap for each frame, in bytes: the frame, its Buffer, and the data of the holder',
      columns: ['held by', '200 B', '1 KB'],
      rows: names.map((name) => [name, ...[200, 1024].map((size) => Math.round(rowsOf(name, size)[0].heapPerFrame))]),
    },
  ],
});
