// Runs one of the long checks. Without a name it lists them.
//
//   npm run reliability
//   npm run reliability -- soak --minutes 60
import { runProgram } from '../scripts/run-program.mjs';

const built = (what, node) => ({ what, node: node.split(' '), needsBuild: true });
const unbuilt = (what, node) => ({ what, node: node.split(' '), needsBuild: false });

runProgram('reliability', {
  chaos: built(
    'random faults of the service, the network and the subscriber [--seed 7] [--minutes 10] [--episode 3] [--report]',
    'scripts/run-ts.mjs reliability/chaos/index.mjs',
  ),
  model: unbuilt('random sequences of steps, compared with a model [--runs 2000] [--seed 1]', 'reliability/model.mjs'),
  continuity: built(
    'cuts on both plans, in virtual time and over real connections [--cuts 200] [--real-cuts 24] [--seed 1]',
    'reliability/continuity/index.mjs',
  ),
  'cluster-simulation': unbuilt(
    'replicas in virtual time with random faults [--runs 2000] [--seed 1] [--states 200000]',
    'reliability/simulation/index.mjs cluster-simulation',
  ),
  'relay-simulation': unbuilt(
    'relays and pages in virtual time with random faults [--runs 2000] [--seed 1]',
    'reliability/simulation/index.mjs relay-simulation',
  ),
  settle: unbuilt(
    'outcomes in random worlds, compared with a ledger that knows everything [--runs 10000] [--seed 1]',
    'reliability/simulation/index.mjs settle',
  ),
  'log-simulation': unbuilt(
    'writers and readers of a log in virtual time with random faults [--runs 2000] [--seed 1] [--threads 2]',
    'reliability/simulation/index.mjs log-simulation',
  ),
  'log-kills': unbuilt(
    'real writers and consumers of a log, killed and stopped [--rounds 100] [--seed 1]',
    'reliability/log-kills.mjs log-kills',
  ),
  'jet-stream-kills': unbuilt(
    'a real NATS server, and writers and consumers of a log on it, killed and stopped [--rounds 50] [--seed 1]',
    'reliability/log-kills.mjs jet-stream-kills',
  ),
  'jet-stream-cluster-kills': unbuilt(
    'the same with three NATS servers, of which the one that leads is killed [--rounds 20] [--seed 1]',
    'reliability/log-kills.mjs jet-stream-cluster-kills',
  ),
  cluster: built(
    'three replica processes and a real broker [--engine nats] [--rate 5000] [--rounds 20] [--quick]',
    'reliability/cluster/index.mjs',
  ),
  fuzz: unbuilt('random bytes from the service and from clients [--runs 5000] [--seed 1]', 'reliability/fuzz.mjs'),
  filter: built(
    'whereField compared with JSON.parse on random documents [--documents 1000000] [--seed 1]',
    'scripts/run-ts.mjs reliability/filter.mjs',
  ),
  soak: built(
    'full rate for a long time: every frame, and memory [--minutes 2] [--rate 50000] [--reconnect-every 5]',
    '--expose-gc reliability/soak/index.mjs',
  ),
  storm: built('2,000 clients that reconnect at once [--clients 2000] [--seed 1]', 'reliability/storm/index.mjs'),
  peers: unbuilt('nginx, haproxy and python3-websockets; writes the report', 'scripts/run-tests.mjs peers --report'),
  mutation: unbuilt(
    'changes the sources and counts the changes that no test detects [FOLDER…] [--keep]',
    'reliability/mutation/index.mjs',
  ),
});
