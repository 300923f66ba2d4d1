// Goals that need only `ws` and ours: this library is never slower.
import { goal, pairedRatio } from '../lib/bench.mjs';
import { cellId, cellsOf, heaps, ways } from './loopback.mjs';
import { sizeLabel, sizes } from './payloads.mjs';
import { modeTitles, nsOf } from './receiving.mjs';

const titles = { ws: 'ws', wsLoaded: 'ws with our packages loaded', ours: 'ours' };
const cells = cellsOf(sizes);

// A process that loads only ws has few live objects, and V8 collects garbage at a lower cost. With live objects of an application, the objects
// of packages make no difference.
const peersIn = (heap, mode) => (heap === 0 && mode !== 'text' ? ['ws', 'wsLoaded', 'ours'] : ['ws', 'ours']);

/** The receivers of all cells. */
export const receiversOf = (modes) =>
  cells.flatMap((cell) => modes.flatMap((mode) => peersIn(cell.heap, mode).map((peer) => ({ ...cell, peer, mode }))));

/** Returns the goals, and the table of CPU times, from the samples of `receiversOf`. */
export const neverBelow = ({ bench, modes, samplesOf, where = '' }) => {
  const of = (cell, mode, peer) => samplesOf({ ...cell, mode, peer });
  const noteOf = (cell, mode) =>
    peersIn(cell.heap, mode).includes('wsLoaded') &&
    `ours takes ${nsOf(of(cell, mode, 'ours'))} ns, and ws ${nsOf(of(cell, mode, 'wsLoaded'))} ns in a process that has loaded the same packages`;
  const goals = modes.flatMap((mode) =>
    cells.map((cell) => {
      const { way, heap, size } = cell;
      const live = heap > 0 ? `, ${heap} MB of live objects` : '';
      return goal({
        id: `${bench}/${mode}/${cellId(cell)}`,
        what: `ws over ours, ${modeTitles[mode]}${where}, ${ways[way]}, ${sizeLabel(size)}${live}`,
        ratio: pairedRatio(of(cell, mode, 'ws'), of(cell, mode, 'ours'), 'ns'),
        atLeast: 1,
        note: noteOf(cell, mode) || undefined,
      });
    }),
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
  return { goals, tables };
};
