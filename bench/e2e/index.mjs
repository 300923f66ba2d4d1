// End to end: a sender in a separate process floods each receiver over loopback, with and without TLS, and with and without live objects
// in the process of the receiver.
import { goal, median, pairedRatio, report, ROUNDS } from '../lib/bench.mjs';
import { missingPeers, peers } from '../peers/index.mjs';
import { cellId, cellsOf, heaps, startLoopback, ways } from '../support/loopback.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';
import { bare, barChart, idOf, installed, receivingTable } from '../support/receiving.mjs';
import { openingOf } from './opening.mjs';
import { wantedOf } from './wanted.mjs';

const small = [200, 1024];
const cells = cellsOf(sizes);
const modeOf = (peer) => peers[peer].modes[0];
const receiver = ({ way, heap, size }, peer) => ({ way, heap, size, peer, mode: modeOf(peer) });

/** The peers with a goal in a cell, and ours, in the order in which they are measured. */
const rivals = installed(['ws', 'raw', 'bun']);
const hasGoal = (cell) => (peer) => wantedOf(peer, cell) !== undefined;
const withGoal = cells.flatMap((cell) => [...rivals.filter(hasGoal(cell)), 'ours'].map((peer) => receiver(cell, peer)));
/** All others have a row in a table, and few rounds. The fastest of them has a goal. */
const isSmall = ({ size, heap }) => small.includes(size) && heap === 0;
const others = cells.flatMap((cell) => {
  const limits = bare.filter((peer) => !hasGoal(cell)(peer));
  const rest = installed().filter((peer) => ![...bare, 'bun'].includes(peer));
  return [...limits, ...(isSmall(cell) ? rest : [])].map((peer) => receiver(cell, peer));
});

const loopback = await startLoopback();
const main = await loopback.measure({ title: 'e2e', receivers: withGoal });
const side = await loopback.measure({ title: 'e2e, others', receivers: others, rounds: Math.ceil(ROUNDS / 3) });
await loopback.stop();

const samplesOf = (cell, peer) => main(receiver(cell, peer)) ?? side(receiver(cell, peer));
const costOf = (cell, peer) => {
  const found = samplesOf(cell, peer);
  return found && median(found.map(({ ns }) => ns));
};
const ratioOf = (samples, cell, peer) =>
  pairedRatio(samples(receiver(cell, peer)), samples(receiver(cell, 'ours')), 'ns');
const placeOf = ({ way, heap, size }) =>
  `${ways[way]}, ${sizeLabel(size)}${heap > 0 ? `, ${heap} MB of live objects` : ''}`;

const names = { ws: 'ws with toString()', raw: 'a bare socket with `data` events', bun: 'the WebSocket of Bun' };
const ns = (value) => `${Number(value.toPrecision(3))} ns`;
// Explains a missed goal: the CPU time that Node alone needs.
const limitOf = (cell) =>
  `ours takes ${ns(costOf(cell, 'ours'))}, and a bare socket, which only counts bytes, ${ns(costOf(cell, 'onread'))} with \`onread\` and ${ns(costOf(cell, 'raw'))} without`;
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
  const measured = installed().filter(
    (peer) => !peer.startsWith('ours') && modeOf(peer) === 'text' && side(receiver(cell, peer)),
  );
  const sideCost = (peer) => median(side(receiver(cell, peer)).map((each) => each.ns));
  const best = measured.reduce((fastest, peer) => (sideCost(peer) < sideCost(fastest) ? peer : fastest));
  return goal({
    id: `e2e/fastest/${cellId(cell)}`,
    what: `the fastest package of npm (${peers[best].title}) over ours, ${placeOf(cell)}`,
    ratio: ratioOf(side, cell, best),
    atLeast,
    note: limitOf(cell),
  });
});

const tables = Object.keys(ways).flatMap((way) =>
  heaps.map((heap) => {
    const samples = Object.fromEntries(
      sizes.flatMap((size) =>
        Object.keys(peers)
          .map((peer) => receiver({ way, heap, size }, peer))
          .map((each) => [idOf(each), samplesOf(each, each.peer)])
          .filter(([, found]) => found),
      ),
    );
    const where = `${ways[way]}, ${heap} MB of live objects`;
    const table = receivingTable(samples, sizes);
    return { ...table, title: `${table.title}, ${where}` };
  }),
);

const charted = ['raw', 'onread', 'bun', 'ws', 'ours'];
const charts = [
  { way: 'tls', size: 200 },
  { way: 'tls', size: 1024 },
  { way: 'plain', size: 65_536 },
].map(({ way, size }) => {
  const points = (heap) =>
    charted
      .map((peer) => [peers[peer].title, costOf({ way, heap, size }, peer)])
      .filter(([, cost]) => cost !== undefined)
      .map(([name, cost]) => [name, Math.round(cost)]);
  return barChart({
    id: `e2e-${way}-${size}`,
    title: `Receiving a frame of ${sizeLabel(size)}, ${ways[way]}, end to end`,
    series: heaps.map((heap) => ({ name: `${heap} MB of live objects`, points: points(heap) })),
  });
});
const opening = openingOf({ ratioOf: (cell) => ratioOf(main, cell, 'ws').median, costOf });

const missing = missingPeers();
await report({
  bench: 'e2e',
  command: 'npm run bench -- e2e',
  goals: [...goals, ...fastestGoals],
  tables: [opening.table, ...tables],
  charts: [opening.chart, ...charts],
  facts: {
    rounds: `${ROUNDS} for receivers that a goal compares, ${Math.ceil(ROUNDS / 3)} for the others`,
    ...(missing.length > 0 && { 'not measured': missing.join(', ') }),
  },
});
