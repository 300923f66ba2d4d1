// Replay: chunks of 64 KiB from memory, without a kernel, a sender or ports. These figures vary least.
import { goal, interleaved, pairedRatio, report, sample } from '../lib/bench.mjs';
import { missingPeers, peers } from '../peers/index.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';
import {
  checkUnits,
  growthChart,
  idOf,
  installed,
  kindTable,
  receivingTable,
  sizeChart,
  nodeArgs,
} from '../support/receiving.mjs';

const file = new URL('sample.mjs', import.meta.url);
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
const all = installed().filter((peer) => peers[peer].program === undefined);
const contenders = [
  ...small.flatMap((size) => all.map((peer) => ({ peer, size, mode: peers[peer].modes[0] }))),
  ...small.flatMap((size) =>
    all
      .filter((peer) => peers[peer].modes.slice(1).includes('bytes') && !operators.includes(peer))
      .map((peer) => ({ peer, size, mode: 'bytes' })),
  ),
  ...large.flatMap((size) => few.map((peer) => ({ peer, size, mode: peers[peer].modes[0] }))),
  ...kinds.flatMap(({ kind, mode }) => small.flatMap((size) => names.map((peer) => ({ peer, size, mode, kind })))),
];
const run = ({ peer, size, mode, kind = 'text' }) => sample(file, [peer, size, mode, kind], { nodeArgs });
const samples = await interleaved({
  title: 'replay',
  contenders: Object.fromEntries(contenders.map((each) => [idOf(each), () => run(each)])),
});
checkUnits(samples);

const against = (other, mine, size) =>
  pairedRatio(
    samples[idOf({ peer: other, size, mode: 'text' })],
    samples[idOf({ peer: mine, size, mode: 'text' })],
    'ns',
  );
const goalsOf = (wanted, id, what, other, mine) =>
  Object.entries(wanted).map(([size, atLeast]) =>
    goal({
      id: `replay/${id}/${size}`,
      what: `${what}, ${sizeLabel(Number(size))}`,
      ratio: against(other, mine, Number(size)),
      atLeast,
    }),
  );
const everywhere = (atLeast) => Object.fromEntries(sizes.map((size) => [size, atLeast]));

const missing = missingPeers();
await report({
  bench: 'replay',
  command: 'npm run bench -- replay',
  goals: [
    ...goalsOf({ 200: 3, 1024: 2.3, 4096: 1.3 }, 'rxjs', 'rxjs/webSocket over ours, as text', 'rxjs', 'ours'),
    ...goalsOf({ 200: 1.3, 1024: 1.3 }, 'operators', 'ws with toString() over ours with six operators', 'ws', 'ours6'),
    ...goalsOf(everywhere(1), 'ws', 'ws with toString() over ours, as text', 'ws', 'ours'),
    ...small.map((size) => {
      const [ws, ours] = ['ws', 'ours'].map((peer) => samples[idOf({ peer, size, mode: 'text', kind: 'unicode' })]);
      const what = `ws with toString() over ours, as text that is not ASCII, ${sizeLabel(size)}`;
      return goal({ id: `replay/unicode/${size}`, what, ratio: pairedRatio(ws, ours, 'ns'), atLeast: 1 });
    }),
    ...goalsOf(everywhere(0.8), 'plain', 'ws with toString() over our plain path', 'ws', 'oursPlain'),
  ],
  tables: [receivingTable(samples, sizes), ...kinds.map((kind) => kindTable(samples, small, { ...kind, names }))],
  charts: [
    ...small.map((size) =>
      sizeChart(samples, size, {
        id: `replay-${size}`,
        title: `Receiving a frame of ${sizeLabel(size)}, replayed from memory`,
      }),
    ),
    growthChart(samples, sizes, ['raw', 'ws', 'rxjs', 'undici', 'ours'], {
      id: 'replay-sizes',
      title: 'Receiving frames as text, by their size, replayed from memory',
    }),
  ],
  facts: missing.length > 0 ? { 'not measured': missing.join(', ') } : {},
});
