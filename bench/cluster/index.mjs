// A cluster over nats-server: the CPU time of a frame in the owner, the server and a follower, and the added delay. `npm run reliability -- cluster` measures takeovers.
import { install } from '../../test/peers/packages.mjs';
import { goal, interleaved, median, medianOf, report, spreadOf, summary } from '../lib/bench.mjs';
import { startListening } from '../support/child.mjs';
import { fullRates, measureAlone, measurePair, paced, reportFrom, startNats, startPair } from './cost.mjs';

install();
const nats = await startNats();
const sender = await startListening(new URL('sender.mjs', import.meta.url));
const running = { nats, sender };

// Each sample has new processes.
const withPair = async (frames, measure) => {
  const pair = await startPair(running, frames);
  const sample = await measure(pair);
  await pair.kill();
  return sample;
};
const atFullRate = ([frames, plan]) => [
  frames,
  () =>
    withPair(Number(frames), (pair) => {
      reportFrom(pair.follower, sender, plan);
      return measurePair(running, plan, pair);
    }),
];
const alone = ([name, plan]) => [`alone ${name}`, () => measureAlone(running, plan)];
const samples = await interleaved({
  title: 'cluster',
  contenders: {
    ...Object.fromEntries(Object.entries(fullRates).map(atFullRate)),
    paced: () => withPair(1, (pair) => measurePair(running, paced, pair)),
    ...Object.fromEntries(Object.entries({ ...fullRates, paced }).map(alone)),
  },
});
await sender.kill();
await nats.stop();

const of = (name, what) => medianOf(samples[name], what);
const rowOf = (title, name) => [
  ...[title, of(name, 'rate'), median(samples[`alone ${name}`])],
  ...['owner', 'server', 'follower'].map((what) => of(name, what)),
];

report({
  bench: 'cluster',
  goals: [
    ...['server', 'follower'].map((what) =>
      goal({
        id: `cluster/${what}`,
        what: `CPU time of a frame at 64 a message: ${what}, in ns`,
        atMost: 500,
        ratio: spreadOf(samples[64], what),
      }),
    ),
    goal({
      id: 'cluster/owner',
      what: 'CPU time of a frame at 64 a message: owner, in ns, more than in a process without a cluster',
      atMost: 500,
      ratio: summary(samples[64].map(({ owner }, round) => owner - samples['alone 64'][round])),
    }),
    ...Object.entries({ p50: 0.5, p99: 3 }).map(([what, atMost]) =>
      goal({
        id: `cluster/${what}`,
        what: `delay that the cluster adds at 20,000 frames a second: ${what}, in ms`,
        atMost,
        ratio: spreadOf(samples.paced, what),
      }),
    ),
  ],
  tables: [
    {
      title:
        'CPU time of a frame in ns. The owner also receives it from the service, as a process without a cluster does. In the last row each frame wakes each process',
      columns: ['frames a message', 'frames a second', 'no cluster', 'owner', 'server', 'follower'],
      rows: [
        rowOf('1, of 900 B, at full rate', 1),
        rowOf('8, of 200 B, at full rate', 8),
        rowOf('64, of 200 B, at full rate', 64),
        rowOf('1, of 200 B, at a fixed rate', 'paced'),
      ],
    },
    {
      title: 'Delay between the owner and a follower in ms, at 20,000 frames of 200 B a second',
      columns: ['p50', 'p99'],
      rows: [[of('paced', 'p50'), of('paced', 'p99')]],
    },
  ],
});
process.exit();
