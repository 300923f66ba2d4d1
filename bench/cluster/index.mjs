// A cluster over nats-server: the CPU time of a frame in the owner, the server and a follower, and the added delay. `npm run reliability -- cluster` measures takeovers.
import { install } from '../../test/peers/packages.mjs';
import { goal, interleaved, median, medianOf, report, spreadOf, summary } from '../lib/bench.mjs';
import { startListening } from '../support/child.mjs';
import {
  fullRates,
  measureAlone,
  measureBare,
  measureIdle,
  measurePair,
  paced,
  reportFrom,
  startNats,
  startPair,
} from './cost.mjs';
import { measureSlopes } from './slope.mjs';

/** About the CPU time of an owner and of a follower for 64 frames, in µs, without that of their clients of NATS. */
const workUs = { sender: 40, receiver: 17 };
/** The calculation for many followers: 200 frames a second of 400 B. */
const paper = { followers: 10_000, framesPerSecond: 200, frameBytes: 400 };

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
    bare: () => measureBare(nats, 64, { sender: 0, receiver: 0 }),
    'bare with work': () => measureBare(nats, 64, workUs),
    paced: () => withPair(1, (pair) => measurePair(running, paced, pair)),
    ...Object.fromEntries(Object.entries({ ...fullRates, paced }).map(alone)),
  },
});
const of = (name, what) => medianOf(samples[name], what);
const costsOf = (name) => ['owner', 'server', 'follower'].map((what) => of(name, what));
const rowOf = (title, name) => {
  const withoutCluster = samples[`alone ${name}`];
  return [title, of(name, 'rate'), withoutCluster ? median(withoutCluster) : '–', ...costsOf(name)];
};
const idle = await withPair(1, (pair) => measureIdle(running, pair));
const slopes = await measureSlopes(running);
await sender.kill();
await nats.stop();

const messages = paper.followers * paper.framesPerSecond;

await report({
  bench: 'cluster',
  goals: [
    ...['server', 'follower'].map((what) =>
      goal({
        id: `cluster/${what}`,
        what: `CPU time of a frame at 64 a message: ${what}, in ns`,
        atMost: 500,
        ratio: spreadOf(samples[64], what),
        note: `Two clients of NATS without a cluster, which send the same bytes and use the CPU as long for each message, cost it ${Math.round(of('bare with work', what))} ns in the same run.`,
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
        'CPU time of a frame in ns. The owner also receives it from the service, as a process without a cluster does. Two rows have messages of the same size without a cluster. In the last row each frame wakes each process',
      columns: ['frames a message', 'frames a second', 'no cluster', 'owner', 'server', 'follower'],
      rows: [
        rowOf('1, of 900 B, at full rate', 1),
        rowOf('8, of 200 B, at full rate', 8),
        rowOf('64, of 200 B, at full rate', 64),
        rowOf('64, as bytes between two clients of NATS', 'bare'),
        rowOf('the same, with as much work as replicas have', 'bare with work'),
        rowOf('1, of 200 B, at a fixed rate', 'paced'),
      ],
    },
    {
      title: 'Delay between the owner and a follower in ms, at 20,000 frames of 200 B a second',
      columns: ['p50', 'p99'],
      rows: [[of('paced', 'p50'), of('paced', 'p99')]],
    },
    {
      title:
        'CPU time of the server for a frame in ns at full rate, by the number of followers and the frames a message',
      columns: ['followers', ...slopes.map(({ burst }) => `at ${burst} a message`)],
      rows: [
        ...slopes[0].rows.map(([followers], at) => [followers, ...slopes.map(({ rows }) => rows[at][1])]),
        ['each additional one', ...slopes.map(({ perFollowerNs }) => perFollowerNs)],
        ['10 000: cores at 200 frames/s', ...slopes.map(({ perFollowerNs }) => (perFollowerNs * messages) / 1e9)],
      ],
    },
  ],
  facts: {
    'CPU time without frames, in ms a second: owner, server, follower': idle.map((ms) => ms.toFixed(1)).join(', '),
    'network of the server with 10,000 followers, 200 frames of 400 B a second, in GB/s':
      (messages * paper.frameBytes) / 1e9,
  },
});
process.exit();
