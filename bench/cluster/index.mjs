// A cluster over nats-server: the CPU time of a frame in the owner, the server and a follower, the added delay, and takeovers.
import { install } from '../../test/peers/packages.mjs';
import { goal, interleaved, isQuick, median, report, ROUNDS, summary } from '../lib/bench.mjs';
import { measureAlone, measureIdle, measurePair, quantile, regimes, startPair } from './cost.mjs';
import { startNats, startSender } from './processes.mjs';
import { ownedBy } from './rendezvous.mjs';
import { measureSlopes } from './slope.mjs';
import { measureTakeovers } from './takeovers.mjs';

const seconds = isQuick ? 1 : 1.5;
/** The calculation for many followers: 200 frames a second of 400 B. */
const paper = { followers: 10_000, framesPerSecond: 200, frameBytes: 400 };

install();
const nats = await startNats();
const sender = await startSender();

const takeovers = await measureTakeovers(nats.port, ROUNDS);
// Each sample has new processes.
const withPair = async (burst, measure) => {
  const pair = await startPair(nats.port, sender, burst);
  const sample = await measure({ nats, sender, pair });
  await pair.kill();
  return sample;
};
const samples = await interleaved({
  title: 'cluster',
  contenders: {
    ...Object.fromEntries(
      regimes.map((regime) => [
        regime.burst,
        () => withPair(regime.burst, (running) => measurePair(running, regime, seconds)),
      ]),
    ),
    ...Object.fromEntries(
      regimes.map((regime) => [`alone ${regime.burst}`, () => measureAlone(sender, regime, seconds)]),
    ),
  },
});
const medianOf = (burst, what) => median(samples[burst].map((sample) => sample[what]));
const idle = await withPair(1, (running) => measureIdle(running, 5));
const slopes = await measureSlopes(nats, sender, Math.min(ROUNDS, 3), seconds);
await sender.kill();
await nats.stop();

const names = Array.from({ length: 10 }, (_, index) => `replica-${index + 1}`);
const accounts = Array.from({ length: 50 }, (_, index) => `account-${index + 1}`);
const [owned, without] = [ownedBy(accounts, names), ownedBy(accounts, names.slice(1))];
const messages = paper.followers * paper.framesPerSecond;

await report({
  bench: 'cluster',
  command: 'npm run bench -- cluster',
  goals: [
    ...['owner', 'server', 'follower'].map((what) =>
      goal({
        id: `cluster/${what}`,
        what: `CPU time of a frame at 64 a message: ${what}, in ns`,
        atMost: 500,
        ratio: summary(samples[64].map((sample) => sample[what])),
      }),
    ),
    ...[
      ['p50', 0.5],
      ['p99', 3],
    ].map(([what, atMost]) =>
      goal({
        id: `cluster/${what}`,
        what: `delay that the cluster adds at 20,000 frames a second, one a message: ${what}, in ms`,
        atMost,
        ratio: summary(samples[1].map((sample) => sample[what])),
      }),
    ),
  ],
  tables: [
    {
      title:
        'CPU time of a frame of 200 B in ns, and the delay between the owner and a follower in ms. The owner also receives the frame from the service, as a process without a cluster does',
      columns: ['frames a message', 'frames a second', 'no cluster', 'owner', 'server', 'follower', 'p50', 'p99'],
      rows: regimes.map(({ burst, framesPerSecond }) => [
        ...[burst, framesPerSecond, median(samples[`alone ${burst}`])],
        ...['owner', 'server', 'follower', 'p50', 'p99'].map((what) => medianOf(burst, what)),
      ]),
    },
    {
      title: 'CPU time of the server for a frame of 200 B in ns, by the number of followers',
      columns: ['followers', ...slopes.map(({ burst }) => `at ${burst} a message`)],
      rows: [
        ...slopes[0].rows.map(([followers], at) => [followers, ...slopes.map(({ rows }) => rows[at][1])]),
        ['each additional one', ...slopes.map(({ perFollowerNs }) => perFollowerNs)],
        ['10 000: cores at 200 frames/s', ...slopes.map(({ perFollowerNs }) => (perFollowerNs * messages) / 1e9)],
      ],
    },
    {
      title: 'Time until another replica has an open connection, in ms',
      columns: ['the owner', 'p50', 'p95'],
      rows: Object.entries(takeovers).map(([how, times]) => [how, quantile(times, 0.5), quantile(times, 0.95)]),
    },
    {
      title:
        '50 accounts over 10 replicas by rendezvous hashing: accounts of each replica, and without the first replica',
      columns: ['replica', 'accounts', 'without replica-1'],
      rows: names.map((name) => [name, owned.get(name), without.get(name) ?? '–']),
    },
  ],
  facts: {
    'CPU time without frames, in ms a second: owner, server, follower': idle.map((ms) => ms.toFixed(1)).join(', '),
    'network of the server with 10,000 followers, 200 frames of 400 B a second, in GB/s':
      (messages * paper.frameBytes) / 1e9,
  },
});
process.exit();
