// How `ws` compares with this library, as the first chart of docs/performance.md, and as a table.
import { figure } from '../lib/table.mjs';
import { heaps, ways } from '../support/loopback.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';

const places = Object.keys(ways).flatMap((way) => sizes.map((size) => ({ way, size })));

/**
 * Returns the chart and the table.
 *
 * @param ratioOf - returns the CPU time of `ws` divided by ours in a cell
 * @param costOf - returns the CPU time of a peer for a frame in a cell, or `undefined`
 */
export const openingOf = ({ ratioOf, costOf }) => {
  const nameOf = ({ way, size }) => `${ways[way]}, ${sizeLabel(size)}`;
  const series = heaps.map((heap) => ({
    name: `${heap} MB of live objects`,
    points: places.map((place) => [nameOf(place), Number(ratioOf({ ...place, heap }).toFixed(2))]),
  }));
  const title = 'CPU time of ws for a frame, as a multiple of ours';
  const listed = ({ name, points }) =>
    `${name}: ${points.map(([place, ratio]) => `${place} ${figure(ratio)}`).join('; ')}`;
  const chart = {
    id: 'e2e-ws',
    title,
    alt: `Bar chart: ${title}. ${series.map(listed).join('. ')}.`,
    kind: 'bars',
    x: 'frames',
    y: 'CPU time of ws / CPU time of ours',
    opens: true,
    series,
  };
  const peers = ['ws', 'bun', 'ours'].filter((peer) => places.every((place) => costOf({ ...place, heap: 0 }, peer)));
  const titles = { ws: '`ws`', bun: 'Bun', ours: 'ours' };
  const table = {
    title: 'CPU time in ns for a frame that is read as text',
    columns: ['frames', ...heaps.flatMap((heap) => peers.map((peer) => `${titles[peer]}, ${heap} MB`))],
    rows: places.map((place) => [
      nameOf(place),
      ...heaps.flatMap((heap) => peers.map((peer) => Number(costOf({ ...place, heap }, peer).toPrecision(3)))),
    ]),
  };
  return { chart, table };
};
