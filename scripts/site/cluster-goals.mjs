// The goals of a cluster in docs/reliability/replicas.md, from the results of the long checks and of the benchmark.
import { readFileSync } from 'node:fs';
import { fill } from '../../bench/lib/fill.mjs';
import { table } from '../../bench/lib/table.mjs';

const resultOf = (path) => JSON.parse(readFileSync(path, 'utf8'));

/** The goals of the long check over a broker, with the text that the table has for them. */
const ofBrokers = {
  'kill -9 of the owner: frames of the new owner, p95': 'kill -9 of the owner, until frames arrive again, p95 in ms',
  'SIGSTOP of the owner: frames of the new owner, maximum': 'SIGSTOP of the owner, maximum in ms',
  'a black hole before the engine: frames of the new owner, maximum':
    'a black hole between owner and broker, maximum in ms',
  'SIGTERM: without frames, p95': 'SIGTERM of the owner: time without frames, p95 in ms',
  'frames lost in a hand-over, maximum': 'SIGTERM of the owner: frames lost, maximum',
  'a rolling deployment: without frames, maximum': 'a rolling deployment of three: time without frames, maximum in ms',
  'frames lost in a rolling deployment, maximum': 'a rolling deployment of three: frames lost, maximum',
  'takeovers without a reason: the engine was killed or lost its data, a handshake was late':
    'the broker is killed, or loses its data: takeovers',
  'evictions of another client, maximum': 'another client: how often it is evicted, maximum',
};

const wantedOf = ({ wanted, atMost }) => wanted?.replace(/ ms$/, '') ?? `at most ${atMost}`;
const named = (goals, what) => {
  const goal = goals.find((each) => each.what === what);
  if (goal === undefined) throw new Error(`The results have no goal "${what}".`);
  return goal;
};
const verdict = (...goals) => (goals.every(({ met }) => met) ? 'met' : '**missed**');

/** Returns the tables as Markdown. */
const clusterGoals = () => {
  const [nats, redis, simulation] = ['cluster', 'cluster-redis', 'cluster-simulation'].map((name) =>
    resultOf(`reliability/results/${name}.json`),
  );
  const bench = resultOf('bench/results/cluster.json');
  const overBrokers = Object.entries(ofBrokers).map(([what, text]) => {
    const pair = [nats, redis].map(({ goals }) => named(goals, what));
    return [text, wantedOf(pair[0]), ...pair.map(({ measured }) => measured), verdict(...pair)];
  });
  const others = [
    ...simulation.goals.map((goal) => [goal.what, wantedOf(goal), goal.measured, '', '', verdict(goal)]),
    ...bench.goals.map((goal) => [goal.what, wantedOf(goal), goal.median, goal.min, goal.max, verdict(goal)]),
  ];
  return [
    `\`${nats.command}\` and \`${redis.command}\`:`,
    table(['case', 'goal', 'NATS', 'Redis', ''], overBrokers),
    `\`${simulation.command}\`, and \`${bench.command}\` (${bench.rounds} rounds, see [Replicas](../performance/relay-and-replicas.md#replicas)):`,
    table(['case', 'goal', 'measured', 'min', 'max', ''], others),
    ...bench.goals.filter(({ met, note }) => !met && note).map(({ what, note }) => `- ${what}: ${note}`),
  ].join('\n\n');
};

/** Returns the page with the tables. */
export const withClusterGoals = (page) => fill(page, { cluster: clusterGoals() }, 'goals');
