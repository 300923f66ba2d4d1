// Goals that need only `ws` and ours: this library is never slower.
import { goal, median, pairedRatio } from '../lib/bench.mjs';
import { cellId, cellsOf, heaps, ways } from './loopback.mjs';
import { sizeLabel, sizes } from './payloads.mjs';
import { modeTitles } from './receiving.mjs';

const peers = ['ws', 'ours'];
const cells = cellsOf(sizes);

/** The receivers of both in all cells. */
export const bothOf = (modes) =>
  cells.flatMap((cell) => modes.flatMap((mode) => peers.map((peer) => ({ ...cell, peer, mode }))));

/** Returns the goals, and the table of CPU times, from the samples of `bothOf`. */
export const neverBelow = ({ bench, modes, samplesOf, where = '' }) => {
  const of = (cell, mode, peer) => samplesOf({ ...cell, mode, peer });
  const goals = modes.flatMap((mode) =>
    cells.map((cell) => {
      const { way, heap, size } = cell;
      const live = heap > 0 ? `, ${heap} MB of live objects` : '';
      return goal({
        id: `${bench}/${mode}/${cellId(cell)}`,
        what: `ws over ours, ${modeTitles[mode]}${where}, ${ways[way]}, ${sizeLabel(size)}${live}`,
        ratio: pairedRatio(of(cell, mode, 'ws'), of(cell, mode, 'ours'), 'ns'),
        atLeast: 1,
      });
    }),
  );
  const tables = modes.flatMap((mode) =>
    Object.keys(ways).map((way) => ({
      title: `CPU time a frame, ns, ${modeTitles[mode]}${where}, ${ways[way]}`,
      columns: ['receiver', ...sizes.map(sizeLabel)],
      rows: heaps.flatMap((heap) =>
        peers.map((peer) => [
          `${peer}, ${heap} MB of live objects`,
          ...sizes.map((size) =>
            Number(median(of({ way, heap, size }, mode, peer).map(({ ns }) => ns)).toPrecision(3)),
          ),
        ]),
      ),
    })),
  );
  return { goals, tables };
};
