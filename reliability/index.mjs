// Runs one of the long checks. Without a name it lists them.
//
//   npm run reliability
//   npm run reliability -- soak --minutes 60
import { runProgram } from '../scripts/run-program.mjs';

const built = (what, node) => ({ what, node: node.split(' '), needsBuild: true });
const unbuilt = (what, node) => ({ ...built(what, node), needsBuild: false });
const simulated = (name, what) => [name, unbuilt(what, `reliability/simulation/index.mjs ${name}`)];

runProgram('reliability', {
  chaos: built(
    'random faults of the service, the network and the subscriber [--minutes 1] [--seed 7] [--episode 3]',
    'scripts/run-ts.mjs reliability/chaos/index.mjs',
  ),
  model: unbuilt(
    'random sequences of steps, compared with a model [--runs 2000] [--seed 1]',
    'reliability/random-tests.mjs model',
  ),
  fuzz: unbuilt(
    'random bytes from the service and from clients [--runs 5000] [--seed 1]',
    'reliability/random-tests.mjs fuzz',
  ),
  filter: built(
    'whereField compared with JSON.parse on random documents [--documents 1000000] [--seed 1]',
    'scripts/run-ts.mjs reliability/filter.mjs',
  ),
  continuity: built(
    'cuts on both plans, in virtual time and over real connections [--cuts 200] [--real-cuts 24] [--seed 1]',
    'reliability/continuity/index.mjs',
  ),
  ...Object.fromEntries([
    simulated(
      'cluster-simulation',
      'replicas in virtual time with random faults [--runs 2000] [--mutant-runs 600] [--states 200000]',
    ),
    simulated('relay-simulation', 'relays and pages in virtual time [--runs 2000] [--mutant-runs 100] [--seed 1]'),
    simulated('log-simulation', 'writers and readers of a log in virtual time [--runs 2000] [--mutant-runs 150]'),
    simulated('settle', 'outcomes, compared with an oracle [--runs 10000] [--mutant-runs 100] [--seed 1]'),
  ]),
  'log-kills': unbuilt(
    'kill -9 of writers and consumers of a log, and of its server [--store folder] [--kills 100] [--seed 1]',
    'reliability/log-kills.mjs',
  ),
  cluster: built(
    'three replica processes and a real broker [--engine nats] [--rate 5000] [--rounds 20] [--quick]',
    'reliability/cluster/index.mjs',
  ),
  soak: built(
    'full rate for a long time: every frame, and memory [--minutes 2] [--rate 50000] [--reconnect-every 5]',
    '--expose-gc reliability/soak/index.mjs',
  ),
  storm: built('clients that reconnect at once [--clients 2000] [--seed 1]', 'reliability/storm/index.mjs'),
  peers: unbuilt('nginx, haproxy and python3-websockets', 'scripts/run-tests.mjs peers --report'),
  mutation: unbuilt(
    'changes the sources, and counts the changes that no test detects [FOLDER or FILE…] [--tests FILES] [--all] [--keep]',
    'reliability/mutation/index.mjs',
  ),
});
