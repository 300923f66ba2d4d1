// As an app: a program that decodes, shares and windows a feed, and one that wants one frame in a thousand. With this library, and written by hand with `ws`.
//
// The payloads, of exactly the same size in each cell, from bench/support/payloads.mjs:
//   everything        a pending transaction: seven fields, the last of which (`input`) fills the frame, as in all other benchmarks
//   wallets, wallet   a batch of trades with six fields each, as `marketBatches$` of rx-trade-feed/testing writes it, with a wallet in each
//                     trade: 1 trade in 250 B, 4 in 1 KB, 19 in 4 KB
import { isDeepStrictEqual } from 'node:util';
import { goal, measured, medianOf, pairedRatio, report } from '../lib/bench.mjs';
import { placeOf, startLoopback, ways } from '../support/loopback.mjs';
import { tasks } from './work.mjs';

const file = new URL('sample.mjs', import.meta.url);
const versions = { 'by-hand': '`ws`, by hand', ours: 'ours' };
/** The least ratio by task and size: by hand over ours. */
const wanted = {
  everything: { 200: 1.25, 1_024: 1.1 },
  wallets: { 250: 2, 1_024: 4, 4_096: 6 },
  wallet: { 250: 1, 1_024: 1, 4_096: 1 },
};
const titles = {
  everything: 'Everything decoded, shared by two subscribers, windows of 1 000',
  wallets: 'One frame in a thousand wanted, those of 500 wallets: `JSON.parse` and `Set.has` by hand',
  wallet: 'One frame in a thousand wanted, those of one wallet: `Buffer.includes` by hand',
};

const cells = Object.entries(tasks).flatMap(([task, { sizes }]) =>
  Object.keys(ways).flatMap((way) => [0, 300].flatMap((heap) => sizes.map((size) => ({ task, way, heap, size })))),
);
const idOf = ({ task, way, heap, size }) => `${task}/${way}/${heap}/${size}`;

const loopback = await startLoopback();
const samples = await measured({
  title: 'app',
  cells: cells.flatMap(({ task, way, heap, size }) =>
    Object.keys(versions).map((version) => [task, way, heap, size, version]),
  ),
  run: (task, way, heap, size, version) => loopback.run(way, file, (origin) => [version, task, size, origin, heap]),
});
await loopback.stop();
const of = ({ task, way, heap, size }, version) => samples(task, way, heap, size, version);

for (const cell of cells) {
  const all = Object.keys(versions).flatMap((version) => of(cell, version));
  if (all.some(({ windows }) => !isDeepStrictEqual(windows, all[0].windows)))
    throw new Error(`The versions of the app have computed different windows: ${idOf(cell)}.`);
}

const ratioOf = (cell) => pairedRatio(of(cell, 'by-hand'), of(cell, 'ours'), 'ns');

report({
  bench: 'app',
  goals: cells.map((cell) =>
    goal({
      id: `app/${idOf(cell)}`,
      what: `${cell.task}, ${placeOf(cell)}: by hand over ours`,
      atLeast: wanted[cell.task][cell.size],
      ratio: ratioOf(cell),
    }),
  ),
  tables: Object.entries(titles).map(([task, title]) => ({
    title: `${title}. CPU time of a frame in ns`,
    columns: ['frames', ...Object.values(versions)],
    rows: cells
      .filter((cell) => cell.task === task)
      .map((cell) => [
        placeOf(cell),
        ...Object.keys(versions).map((version) => Math.round(medianOf(of(cell, version), 'ns'))),
      ]),
  })),
});
