// Replay: chunks of 64 KiB from memory, without a kernel, a sender or ports. These figures vary least.
import { goal, measured, pairedRatio, report, sample } from '../lib/bench.mjs';
import { installed, missingPeers, peers } from '../peers/index.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';
import { nsOf, receiveSample, receivingTable } from '../support/receiving.mjs';

const small = [200, 1024];
const names = ['ws', 'rxjs', 'ours'];
/** Frames that aren't ASCII text, as the others are. */
const kinds = [
  { kind: 'unicode', mode: 'text', title: 'CPU time a frame, ns: text with a letter that is not ASCII' },
  { kind: 'binary', mode: 'bytes', title: 'CPU time a frame, ns: binary frames, left as bytes' },
];
const large = [4096, 65_536];
const few = ['raw', 'onread', 'ws', 'rxjs', 'undici', 'ours', 'ours6', 'oursPlain'];
const operators = ['ours3', 'ours6', 'oursPlain'];
/** Every peer that runs in this Node, at the small sizes, and those of `few` at the large sizes, where copying dominates. */
const all = installed.filter((peer) => peers[peer].program === undefined);
const asBytes = all.filter((peer) => peers[peer].modes.slice(1).includes('bytes') && !operators.includes(peer));
const textOf = (peer, size) => [peer, size, peers[peer].modes[0], 'text'];

const samplesOf = await measured({
  title: 'replay',
  cells: [
    ...small.flatMap((size) => all.map((peer) => textOf(peer, size))),
    ...small.flatMap((size) => asBytes.map((peer) => [peer, size, 'bytes', 'text'])),
    ...large.flatMap((size) => few.map((peer) => textOf(peer, size))),
    ...kinds.flatMap(({ kind, mode }) => small.flatMap((size) => names.map((peer) => [peer, size, mode, kind]))),
  ],
  run: (...cell) => sample(receiveSample, [...cell, 0]),
});

const goalsOf = (wanted, id, what, [over, under], kind = 'text') =>
  Object.entries(wanted).map(([size, atLeast]) =>
    goal({
      id: `replay/${id}/${size}`,
      what: `${what}, ${sizeLabel(Number(size))}`,
      ratio: pairedRatio(samplesOf(over, size, 'text', kind), samplesOf(under, size, 'text', kind), 'ns'),
      atLeast,
    }),
  );
const everywhere = (atLeast) => Object.fromEntries(sizes.map((size) => [size, atLeast]));
const ws = 'ws with toString() over ours';

await report({
  bench: 'replay',
  goals: [
    ...goalsOf({ 200: 3, 1024: 2.3, 4096: 1.3 }, 'rxjs', 'rxjs/webSocket over ours, as text', ['rxjs', 'ours']),
    ...goalsOf({ 200: 1.3, 1024: 1.3 }, 'operators', `${ws} with six operators`, ['ws', 'ours6']),
    ...goalsOf(everywhere(1), 'ws', `${ws}, as text`, ['ws', 'ours']),
    ...goalsOf({ 200: 1, 1024: 1 }, 'unicode', `${ws}, as text that is not ASCII`, ['ws', 'ours'], 'unicode'),
    ...goalsOf(everywhere(0.8), 'plain', 'ws with toString() over our plain path', ['ws', 'oursPlain']),
  ],
  tables: [
    receivingTable((...cell) => samplesOf(...cell, 'text'), sizes),
    ...kinds.map(({ kind, mode, title }) => ({
      title,
      columns: ['receiver', ...small.map(sizeLabel)],
      rows: names.map((peer) => [peers[peer].title, ...small.map((size) => nsOf(samplesOf(peer, size, mode, kind)))]),
    })),
  ],
  facts: { ...missingPeers },
});
