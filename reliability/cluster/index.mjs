// Three replica processes, the local service and a real broker, with faults: kills, stops, hand-overs, cuts, and other clients.
//
//   npm run reliability -- cluster [--engine nats] [--rate 5000] [--rounds 20] [--only 'kill -9']
//   npm run reliability -- cluster --quick      each scenario once, at 500 frames a second: CI runs it
import { install } from '../../test/peers/packages.mjs';
import { atMost, exactly, holds, report } from '../lib/report.mjs';
import { readOptions } from '../lib/options.mjs';
import { startCluster } from './cluster.mjs';
import { scenarios, three } from './scenarios.mjs';

const options = readOptions(
  { engine: 'nats', rate: undefined, rounds: undefined, only: undefined, quick: false },
  { positive: ['rate', 'rounds'] },
);
const { engine, only, quick, rate = quick ? 500 : 5_000, rounds = quick ? 1 : 20 } = options;
/** Scenarios without a goal for a percentile run less often. The fourth late handshake within a minute counts as another client. */
const roundsOf = (name) => {
  if (/kill -9|SIGTERM/.test(name)) return rounds;
  return Math.min(Math.ceil(rounds / 4), name.includes('late') ? 3 : Infinity);
};

install();
const cluster = await startCluster(engine, rate);
const results = [];
let failure;
try {
  await three(cluster);
  for (const [name, run] of Object.entries(scenarios)) {
    if ((only !== undefined && !name.includes(only)) || (quick && name.includes('0 s'))) continue;
    for (let round = 1; round <= roundsOf(name); round += 1) {
      const result = await run(cluster);
      console.log(`${name}: ${JSON.stringify(result)}`);
      results.push({ name, ...result });
    }
  }
} catch (error) {
  failure = error;
}
const violations = cluster.violations();
const appended = await cluster.checkAppended();
const sent = cluster.pushed();
await cluster.close();
for (const line of [...violations, ...appended.violations, ...(failure ? [failure.message] : [])]) console.log(line);

const of = (name) => results.filter((each) => each.name.includes(name));
const percentile = (numbers, share) => {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.ceil(sorted.length * share) - 1];
};
const valuesOf = (name, field) => of(name).map((each) => each[field]);
const highest = (name, field) => Math.max(...valuesOf(name, field));
const p95 = (name, field) => percentile(valuesOf(name, field), 0.95);
// On a machine that stands still for seconds these don't hold, so the short run doesn't check them.
const whenFast = [
  exactly('takeovers that the first owner won again', results.filter(({ isOther }) => isOther === false).length, 0),
  exactly(
    'takeovers without a reason: the engine was killed or lost its data, a handshake was late',
    results.filter(({ isSame }) => isSame === false).length,
    0,
  ),
  exactly('changes of the owner in a rolling deployment, maximum', highest('rolling', 'changes'), 1),
  exactly('frames lost in a hand-over, maximum', highest('SIGTERM', 'lost'), 0),
  exactly('frames lost in a rolling deployment, maximum', highest('rolling', 'lost'), 0),
  exactly('frames lost by a follower that is cut off for up to 20 s, maximum', highest('cut off for 2', 'lost'), 0),
  atMost('gaps of a follower that is cut off for 120 s, maximum', highest('120 s', 'gaps'), 1),
  exactly('frames lost while the engine is killed, maximum', highest('engine is killed', 'lost'), 0),
  atMost('evictions of another client, maximum', highest('another client', 'evictions'), 3),
  atMost('kill -9 of the owner: frames of the new owner, p95', p95('kill -9', 'ms'), 1_000, 'ms'),
  atMost('SIGSTOP of the owner: frames of the new owner, maximum', highest('SIGSTOP', 'ms'), 3_000, 'ms'),
  atMost(
    'a black hole before the engine: frames of the new owner, maximum',
    highest('engine: black hole', 'ms'),
    3_000,
    'ms',
  ),
  atMost('SIGTERM: without frames, p95', p95('SIGTERM', 'outageMs'), 50, 'ms'),
  atMost('a rolling deployment: without frames, maximum', highest('rolling', 'ms'), 50, 'ms'),
];
const isComplete = failure === undefined && only === undefined;
const range = (all, field) => {
  const numbers = all.map((each) => each[field]).filter((each) => each !== undefined);
  if (numbers.length === 0) return '–';
  return `${Math.round(percentile(numbers, 0.5))} / ${Math.round(percentile(numbers, 0.95))}`;
};
const fields = {
  claim: 'claimMs',
  key: 'keyMs',
  connection: 'openMs',
  'frames of the new owner': 'ms',
  'without frames': 'outageMs',
  'frames lost': 'lost',
};
const rows = Object.keys(scenarios).map((name) => [
  name,
  of(name).length,
  ...Object.values(fields).map((field) => range(of(name), field)),
]);

report({
  name: engine === 'nats' ? 'cluster' : `cluster-${engine}`,
  command: `npm run reliability -- cluster --engine ${engine} --rate ${rate} --rounds ${rounds}`,
  keep: isComplete && !quick,
  goals: [
    holds('all scenarios ended with three replicas that receive frames', failure === undefined),
    exactly('replicas that emit frames twice, out of order, or with a loss that no gap reports', violations.length, 0),
    exactly('the same in the log to which the owners append', appended.violations.length, 0),
    ...(isComplete && !quick ? whenFast : []),
  ],
  tables: [
    {
      title: `Times in ms since the cause, p50 / p95, at ${rate} frames a second over ${engine}: the new owner claims, has the key, a connection, frames`,
      columns: ['scenario', 'rounds', ...Object.keys(fields)],
      rows,
    },
  ],
  facts: { frames: sent, 'frames in the log': appended.frames, replicas: cluster.replicas.length },
});
process.exit();
