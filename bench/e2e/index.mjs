// End to end: a sender in a separate process floods each receiver over loopback, with and without TLS, and with and without live objects
// in the process of the receiver.
import { goal, medianOf, pairedRatio, report, ROUNDS } from '../lib/bench.mjs';
import { figure } from '../lib/table.mjs';
import { installed, missingPeers, peers } from '../peers/index.mjs';
import { sizes } from '../support/payloads.mjs';
import { cellId, cellsOf, heaps, nsOf, placeOf, receivingTable, startLoopback, ways } from '../support/receiving.mjs';

const bySize = (...ratios) => Object.fromEntries(sizes.map((size, n) => [size, ratios[n]]));
const overTls = { plain: bySize(), tls: { 4096: 0.9, 65_536: 0.9 } };
const overBun = { plain: bySize(2.3, 1.9, 1.1, 0.9), tls: bySize(1.6, 0.9, 0.5, 0.4) };
/**
 * The CPU time of a peer for a frame that is read as text, divided by ours: what it must reach, by peer, by the MB of live objects in the receiver,
 * by the connection, by the size of a payload.
 */
const wanted = {
  ws: {
    0: { plain: bySize(3, 2.4, 2.1, 2.5), tls: bySize(2.5, 1.5, 1.4, 1.3) },
    200: { plain: bySize(3, 2, 1.8, 2.5), tls: bySize(2.4, 1.5, 1.4, 1.3) },
  },
  raw: { 0: overTls, 200: overTls },
  bun: { 0: overBun, 200: overBun },
};
const wantedOf = (peer, { way, heap, size }) => wanted[peer]?.[heap]?.[way]?.[size];

const cells = cellsOf(sizes);
const modeOf = (peer) => peers[peer].modes[0];
const receiver = ({ way, heap, size }, peer) => ({ way, heap, size, peer, mode: modeOf(peer) });

/** The peers with a goal in a cell, and ours, in the order in which they are measured. */
const rivals = ['ws', 'raw', 'bun'].filter((peer) => installed.includes(peer));
const hasGoal = (cell) => (peer) => wantedOf(peer, cell) !== undefined;
const withGoal = cells.flatMap((cell) => [...rivals.filter(hasGoal(cell)), 'ours'].map((peer) => receiver(cell, peer)));
/** All others have a row in a table, and few rounds. The fastest of them has a goal. */
const isSmall = ({ size, heap }) => [200, 1024].includes(size) && heap === 0;
const others = cells.flatMap((cell) => {
  const limits = installed.filter((peer) => peers[peer].isBare && !hasGoal(cell)(peer));
  const rest = installed.filter((peer) => !peers[peer].isBare && peer !== 'bun');
  return [...limits, ...(isSmall(cell) ? rest : [])].map((peer) => receiver(cell, peer));
});

const loopback = await startLoopback();
const main = await loopback.measure({ title: 'e2e', receivers: withGoal });
const side = await loopback.measure({ title: 'e2e, others', receivers: others, rounds: Math.ceil(ROUNDS / 3) });
await loopback.stop();

const samplesOf = (cell, peer) => main(receiver(cell, peer)) ?? side(receiver(cell, peer));
const costOf = (cell, peer) => nsOf(samplesOf(cell, peer));
const ratioOf = (samples, cell, peer) =>
  pairedRatio(samples(receiver(cell, peer)), samples(receiver(cell, 'ours')), 'ns');

const names = { ws: 'ws with toString()', raw: 'a bare socket with `data` events', bun: 'the WebSocket of Bun' };
// Explains a missed goal: the CPU time that Node alone needs.
const limitOf = (cell) =>
  `ours takes ${costOf(cell, 'ours')} ns, and a bare socket, which only counts bytes, ${costOf(cell, 'onread')} ns with \`onread\` and ${costOf(cell, 'raw')} ns without`;
const goals = rivals.flatMap((peer) =>
  cells
    .filter((cell) => hasGoal(cell)(peer))
    .map((cell) =>
      goal({
        id: `e2e/${peer}/${cellId(cell)}`,
        what: `${names[peer]} over ours, ${placeOf(cell)}`,
        ratio: ratioOf(main, cell, peer),
        atLeast: wantedOf(peer, cell),
        note: limitOf(cell),
      }),
    ),
);

const fastestGoals = Object.entries({ 200: 2.5, 1024: 1.3 }).map(([text, atLeast]) => {
  const cell = { way: 'tls', heap: 0, size: Number(text) };
  const packages = installed.filter((peer) => !peer.startsWith('ours') && modeOf(peer) === 'text');
  const costs = packages
    .map((peer) => ({ peer, samples: side(receiver(cell, peer)) }))
    .filter(({ samples }) => samples)
    .map(({ peer, samples }) => ({ peer, ns: medianOf(samples, 'ns') }));
  const { peer: best } = costs.reduce((fastest, each) => (each.ns < fastest.ns ? each : fastest));
  return goal({
    id: `e2e/fastest/${cellId(cell)}`,
    what: `the fastest package of npm (${peers[best].title}) over ours, ${placeOf(cell)}`,
    ratio: ratioOf(side, cell, best),
    atLeast,
    note: limitOf(cell),
  });
});

const tables = Object.keys(ways).flatMap((way) =>
  heaps.map((heap) =>
    receivingTable(
      (peer, size, mode) => (mode === modeOf(peer) ? samplesOf({ way, heap, size }, peer) : undefined),
      sizes,
      `, ${ways[way]}, ${heap} MB of live objects`,
    ),
  ),
);

// How `ws` compares with this library: the first chart of docs/performance.md, and a table.
const places = Object.keys(ways).flatMap((way) => sizes.map((size) => ({ way, size })));
const title = 'CPU time of ws for a frame, as a multiple of ours';
const series = heaps.map((heap) => ({
  name: `${heap} MB of live objects`,
  points: places.map((place) => [placeOf(place), Number(ratioOf(main, { ...place, heap }, 'ws').median.toFixed(2))]),
}));
const listed = ({ name, points }) => `${name}: ${points.map(([at, ratio]) => `${at} ${figure(ratio)}`).join('; ')}`;
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
const titles = { ws: '`ws`', bun: 'Bun', ours: 'ours' };
const shown = Object.keys(titles).filter((peer) => places.every((place) => costOf({ ...place, heap: 0 }, peer)));
const columns = heaps.flatMap((heap) => shown.map((peer) => ({ heap, peer })));
const opening = {
  title: 'CPU time in ns for a frame that is read as text',
  columns: ['frames', ...columns.map(({ heap, peer }) => `${titles[peer]}, ${heap} MB`)],
  rows: places.map((place) => [placeOf(place), ...columns.map(({ heap, peer }) => costOf({ ...place, heap }, peer))]),
};

await report({
  bench: 'e2e',
  goals: [...goals, ...fastestGoals],
  tables: [opening, ...tables],
  charts: [chart],
  facts: {
    rounds: `${ROUNDS} for receivers that a goal compares, ${Math.ceil(ROUNDS / 3)} for the others`,
    ...missingPeers,
  },
});
