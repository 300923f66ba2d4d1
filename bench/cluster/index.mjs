// A cluster over nats-server: the CPU time of a frame in the owner, the server and a follower, the added delay, and takeovers.
import { connect } from '@nats-io/transport-node';
import { setTimeout as delay } from 'node:timers/promises';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { goal, isQuick, median, report, ROUNDS, summary } from '../lib/bench.mjs';
import { startNats, startReplica } from './processes.mjs';
import { ownedBy } from './rendezvous.mjs';

const seconds = isQuick ? 1 : 5;
const payload = 'x'.repeat(184);
const now = () => Number(process.hrtime.bigint()) / 1e6;

const nats = await startNats();
const service = await startTradeFeedService({ limits: { backlogBytes: Infinity } });
const env = {
  TRADE_FEED_BASE_URL: service.baseUrl,
  TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
};
let started = 0;
const start = async () => {
  const replica = startReplica(nats.port, `replica-${(started += 1)}`, env);
  await replica.opened();
  return replica;
};
let replicas = [await start(), await start()];
const ownerOf = () => replicas.find((replica) => replica.isOwner());

/** Sends frames of 200 B in bursts, one burst each `everyMs`, and returns what they cost. */
const measure = async (burst, everyMs) => {
  const [owner, follower] = [ownerOf(), replicas.find((replica) => !replica.isOwner())];
  const before = nats.cpuNs();
  for (const replica of replicas) replica.send('begin');
  const end = now() + seconds * 1_000;
  for (let next = now(); next < end; next += everyMs) {
    const wait = next - now();
    if (wait > 0) await delay(wait);
    for (let n = 0; n < burst; n += 1) service.push('raw', now().toFixed(3).padStart(16) + payload);
  }
  await delay(300);
  const [ofOwner, ofFollower] = [await owner.report(), await follower.report()];
  const { frames } = ofFollower;
  return {
    owner: ofOwner.cpuNs / frames,
    server: (nats.cpuNs() - before) / frames,
    follower: ofFollower.cpuNs / frames,
    p50: quantile(ofFollower.delays, 0.5) - quantile(ofOwner.delays, 0.5),
    p99: quantile(ofFollower.delays, 0.99) - quantile(ofOwner.delays, 0.99),
  };
};

const quantile = (values, part) => values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? NaN;

/** Ends the owner, and returns the ms until another replica has an open connection. */
const takeover = async (how) => {
  const owner = ownerOf();
  const others = replicas.filter((replica) => replica !== owner);
  const known = others.map((replica) => replica.openings());
  const begin = now();
  if (how === 'kill -9') await owner.kill();
  else owner.send('hand-over');
  const opened = await Promise.all(others.map((replica, index) => replica.opened(known[index])));
  await owner.kill();
  replicas = [...others, await start()];
  while (ownerOf() === undefined) await delay(20);
  // The standbys must be known to the owner.
  await delay(1_500);
  return Math.min(...opened.map(({ at }) => at)) - begin;
};

const bursts = [
  [1, 1],
  [8, 1],
  [64, 3],
];
const samples = new Map(bursts.map(([burst]) => [burst, []]));
for (let round = 0; round < ROUNDS; round += 1)
  for (const [burst, everyMs] of bursts) samples.get(burst).push(await measure(burst, everyMs));
const medianOf = (burst, what) => median(samples.get(burst).map((sample) => sample[what]));

// More followers: connections that only receive, in this process.
const followers = [];
const slope = [];
for (const count of [0, 20, 40]) {
  while (followers.length < count) {
    const connection = await connect({ servers: `127.0.0.1:${nats.port}` });
    connection.subscribe('rtf.v1.bench.feed', { callback: () => undefined });
    await connection.flush();
    followers.push(connection);
  }
  const servers = [];
  for (let round = 0; round < ROUNDS; round += 1) servers.push((await measure(64, 3)).server);
  slope.push([count + replicas.length - 1, median(servers)]);
}
for (const connection of followers) await connection.close();
const [[few, least], [many, most]] = [slope[0], slope.at(-1)];
const perFollower = (most - least) / (many - few);

replicas.push(await start());
await delay(1_500);
const takeovers = {};
for (const how of ['kill -9', 'hand-over']) {
  takeovers[how] = [];
  for (let round = 0; round < ROUNDS; round += 1) takeovers[how].push(await takeover(how));
}

for (const replica of replicas) await replica.kill();
await service.shutdown();
await nats.stop();

const names = Array.from({ length: 10 }, (_, index) => `replica-${index + 1}`);
const accounts = Array.from({ length: 50 }, (_, index) => `account-${index + 1}`);
const [owned, without] = [ownedBy(accounts, names), ownedBy(accounts, names.slice(1))];

const goals = ['owner', 'server', 'follower'].map((what) =>
  goal({
    id: `cluster/${what}`,
    what: `CPU time of a frame at 64 a message: ${what}, in ns`,
    atMost: 500,
    ratio: summary(samples.get(64).map((sample) => sample[what])),
  }),
);
await report({
  bench: 'cluster',
  command: 'npm run bench -- cluster',
  goals,
  tables: [
    {
      title:
        'CPU time of a frame of 200 B in ns, and the delay that the cluster adds in ms. The owner also receives it from the service',
      columns: ['frames a message', 'owner', 'server', 'follower', 'p50', 'p99'],
      rows: bursts.map(([burst]) => [
        burst,
        ...['owner', 'server', 'follower', 'p50', 'p99'].map((what) => medianOf(burst, what)),
      ]),
    },
    {
      title: 'CPU time of the server for a frame, by the number of followers, at 64 a message',
      columns: ['followers', 'ns'],
      rows: [...slope, ['10 000, by the slope', least + perFollower * (10_000 - few)]],
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
  facts: { 'ns of the server for a frame and follower': perFollower.toFixed(0) },
});
process.exit();
