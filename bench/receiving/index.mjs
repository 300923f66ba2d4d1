// Receiving over loopback: a sender in a separate process floods each receiver, with and without TLS, and with and without live objects in the
// process of the receiver. `ws`, the WebSocket of Bun, and this library; and the CPU time of a core by the rate of a feed.
import { goal, measured, medianOf, pairedRatio, report, ROUNDS, sample } from '../lib/bench.mjs';
import { missingPeers, peers } from '../peers/index.mjs';
import { nsOf, placeOf, startLoopback, ways } from '../support/loopback.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';

const file = new URL('sample.mjs', import.meta.url);
const bySize = (...ratios) => Object.fromEntries(sizes.map((size, n) => [size, ratios[n]]));
const overBun = { plain: bySize(2.3, 1.9, 1.1, 0.9), tls: bySize(1.6, 0.9, 0.5, 0.4) };
/** What a peer must take at least over ours for a frame that is read as text: by peer, MB of live objects, connection and size. */
const wanted = {
  ws: {
    0: { plain: bySize(3, 2.4, 2.1, 2.5), tls: bySize(2.5, 1.5, 1.4, 1.3) },
    200: { plain: bySize(3, 2, 1.8, 2.5), tls: bySize(2.4, 1.5, 1.4, 1.3) },
  },
  bun: { 0: overBun, 200: overBun },
};
const rivals = missingPeers ? ['ws'] : ['ws', 'bun'];
const heaps = [0, 200];
/** Frames that are taken as bytes, or held and then read, in half of the rounds: ours must not be slower than `ws`. */
const others = { bytes: 'as bytes', held: 'held, then as text' };

const cells = Object.keys(ways).flatMap((way) => heaps.flatMap((heap) => sizes.map((size) => ({ way, heap, size }))));
const loopback = await startLoopback();
const run = (way, heap, size, peer, mode) =>
  loopback.run(way, file, (origin) => [peer, size, mode, 'text', heap, origin], peers[peer].program);
const argsOf = ({ way, heap, size }, peer, mode) => [way, heap, size, peer, mode];
const asText = await measured({
  title: 'receiving',
  cells: cells.flatMap((cell) => [...rivals, 'ours'].map((peer) => argsOf(cell, peer, 'text'))),
  run,
});
const otherwise = await measured({
  title: 'receiving, bytes and held',
  rounds: Math.ceil(ROUNDS / 2),
  cells: Object.keys(others).flatMap((mode) =>
    cells.flatMap((cell) => ['ws', 'ours'].map((peer) => argsOf(cell, peer, mode))),
  ),
  run,
});
await loopback.stop();

const rates = [1_000, 10_000, 50_000, 100_000, 200_000];
const byRate = await measured({
  title: 'receiving, rates',
  rounds: Math.min(3, ROUNDS),
  cells: rates,
  run: (rate) => sample(new URL('rate.mjs', import.meta.url), [rate, 256]),
});

const samplesOf = (cell, peer, mode) => (mode === 'text' ? asText : otherwise)(...argsOf(cell, peer, mode));
const goalOf = (cell, peer, mode, what, atLeast) =>
  goal({
    id: `receiving/${peer}/${mode}/${cell.way}/${cell.heap}/${cell.size}`,
    what: `${what}, ${placeOf(cell)}`,
    ratio: pairedRatio(samplesOf(cell, peer, mode), samplesOf(cell, 'ours', mode), 'ns'),
    atLeast,
  });
const tableOf = (way, mode, names) => ({
  title: `CPU time of a frame in ns, ${others[mode] ?? 'as text'}, ${ways[way]}`,
  columns: ['receiver', ...sizes.map(sizeLabel)],
  rows: heaps.flatMap((heap) =>
    names.map((peer) => [
      `${peers[peer].title}, ${heap} MB of live objects`,
      ...sizes.map((size) => nsOf(samplesOf({ way, heap, size }, peer, mode))),
    ]),
  ),
});

report({
  bench: 'receiving',
  goals: [
    ...rivals.flatMap((peer) =>
      cells.map((cell) =>
        goalOf(cell, peer, 'text', `${peers[peer].title} over ours`, wanted[peer][cell.heap][cell.way][cell.size]),
      ),
    ),
    ...Object.entries(others).flatMap(([mode, how]) =>
      cells.map((cell) => goalOf(cell, 'ws', mode, `ws over ours, ${how}`, 1)),
    ),
  ],
  tables: [
    ...Object.keys(ways).map((way) => tableOf(way, 'text', [...rivals, 'ours'])),
    ...Object.keys(others).flatMap((mode) => Object.keys(ways).map((way) => tableOf(way, mode, ['ws', 'ours']))),
    {
      title: 'Share of a core by rate, frames of 256 B over loopback',
      columns: ['frames a second', 'received', 'share of a core, %', 'ns a frame'],
      rows: rates.map((rate) => [
        rate,
        Math.round(medianOf(byRate(rate), 'rate')),
        Number(medianOf(byRate(rate), ({ share }) => share * 100).toPrecision(2)),
        nsOf(byRate(rate)),
      ]),
    },
  ],
  facts: { ...missingPeers },
});
