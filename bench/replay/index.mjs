// Replay: chunks of 64 KiB from memory, without a kernel, a sender or ports. These figures vary least.
import { goal, measured, pairedRatio, report, sample } from '../lib/bench.mjs';
import { peers } from '../peers/index.mjs';
import { nsOf } from '../support/loopback.mjs';
import { sizeLabel, sizes } from '../support/payloads.mjs';

const names = Object.keys(peers).filter((peer) => peer !== 'bun');
/** Text with a letter that isn't ASCII, which is checked and decoded in another way. */
const small = [200, 1024];

const samplesOf = await measured({
  title: 'replay',
  cells: [
    ...sizes.flatMap((size) => names.map((peer) => [peer, size, 'text'])),
    ...small.flatMap((size) => ['ws', 'ours'].map((peer) => [peer, size, 'unicode'])),
  ],
  run: (peer, size, kind) => sample(new URL('../receiving/sample.mjs', import.meta.url), [peer, size, 'text', kind, 0]),
});

const goalsOf = (wanted, id, what, [over, under], kind = 'text') =>
  Object.entries(wanted).map(([size, atLeast]) =>
    goal({
      id: `replay/${id}/${size}`,
      what: `${what}, ${sizeLabel(Number(size))}`,
      ratio: pairedRatio(samplesOf(over, size, kind), samplesOf(under, size, kind), 'ns'),
      atLeast,
    }),
  );
const everywhere = (atLeast) => Object.fromEntries(sizes.map((size) => [size, atLeast]));

report({
  bench: 'replay',
  goals: [
    ...goalsOf({ 200: 3, 1024: 2.3, 4096: 1.3 }, 'rxjs', 'rxjs/webSocket over ours, as text', ['rxjs', 'ours']),
    ...goalsOf({ 200: 1.3, 1024: 1.3 }, 'operators', 'ws over ours with six operators', ['ws', 'ours6']),
    ...goalsOf(everywhere(1), 'ws', 'ws over ours, as text', ['ws', 'ours']),
    ...goalsOf({ 200: 1, 1024: 1 }, 'unicode', 'ws over ours, as text that is not ASCII', ['ws', 'ours'], 'unicode'),
    ...goalsOf(everywhere(0.8), 'plain', 'ws over our plain path', ['ws', 'oursPlain']),
  ],
  tables: [
    {
      title: 'CPU time of a frame in ns, as text',
      columns: ['receiver', ...sizes.map(sizeLabel)],
      rows: names.map((peer) => [peers[peer].title, ...sizes.map((size) => nsOf(samplesOf(peer, size, 'text')))]),
    },
  ],
});
