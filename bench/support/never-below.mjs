// Goals that need only `ws` and ours, over loopback: this library is never slower.
import { goal, pairedRatio, report } from '../lib/bench.mjs';
import { sizeLabel, sizes } from './payloads.mjs';
import { cellId, cellsOf, heaps, modeTitles, nsOf, placeOf, startLoopback, ways } from './receiving.mjs';

const titles = { ws: 'ws', wsLoaded: 'ws with our packages loaded', ours: 'ours' };
const cells = cellsOf(sizes);

// A process that loads only ws has few live objects, and V8 collects garbage at a lower cost. With live objects of an application, the objects
// of packages make no difference.
const peersIn = (heap, mode) => (heap === 0 && mode !== 'text' ? ['ws', 'wsLoaded', 'ours'] : ['ws', 'ours']);

/** Measures `ws` and ours in some modes, and reports the goals and the tables of CPU times. `node` is another Node, and `where` names it. */
export const neverBelow = async ({ bench, modes, rounds, node, where = '' }) => {
  const loopback = await startLoopback();
  const receivers = cells.flatMap((cell) =>
    modes.flatMap((mode) => peersIn(cell.heap, mode).map((peer) => ({ ...cell, peer, mode }))),
  );
  const samplesOf = await loopback.measure({ title: bench, receivers, node, rounds });
  await loopback.stop();

  const of = (cell, mode, peer) => samplesOf({ ...cell, mode, peer });
  const noteOf = (cell, mode) =>
    peersIn(cell.heap, mode).includes('wsLoaded')
      ? `ours takes ${nsOf(of(cell, mode, 'ours'))} ns, and ws ${nsOf(of(cell, mode, 'wsLoaded'))} ns in a process that has loaded the same packages`
      : undefined;
  const goals = modes.flatMap((mode) =>
    cells.map((cell) =>
      goal({
        id: `${bench}/${mode}/${cellId(cell)}`,
        what: `ws over ours, ${modeTitles[mode]}${where}, ${placeOf(cell)}`,
        ratio: pairedRatio(of(cell, mode, 'ws'), of(cell, mode, 'ours'), 'ns'),
        atLeast: 1,
        note: noteOf(cell, mode),
      }),
    ),
  );
  const tables = modes.flatMap((mode) =>
    Object.keys(ways).map((way) => ({
      title: `CPU time a frame, ns, ${modeTitles[mode]}${where}, ${ways[way]}`,
      columns: ['receiver', ...sizes.map(sizeLabel)],
      rows: heaps.flatMap((heap) =>
        peersIn(heap, mode).map((peer) => [
          `${titles[peer]}, ${heap} MB of live objects`,
          ...sizes.map((size) => nsOf(of({ way, heap, size }, mode, peer))),
        ]),
      ),
    })),
  );
  await report({ bench, rounds, goals, tables });
};
