// Runs the election of a cluster in virtual time with random faults, with each rule broken on purpose, and in every order of events.
//
//   npm run reliability -- cluster-simulation [--runs 2000] [--seed 1] [--mutant-runs 600] [--states 200000]
//   npm run reliability -- cluster-simulation --runs 1 --seed S      repeats one run, and prints its timeline
import { mutants } from '../../test/cluster/simulation/mutants.mjs';
import { runSeeds, simulation, timelineOf, violationsOf } from '../../test/support/simulation.mjs';
import { exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { brokenRules, endWith, timesOf, wholeNumbers } from '../lib/simulation.mjs';

const options = wholeNumbers({ runs: 2_000, seed: 1, 'mutant-runs': 600, states: 200_000 });
const { runs, seed, 'mutant-runs': mutantRuns, states: maxStates } = options;

const startedAt = performance.now();
const { simulate } = await simulation('cluster');
if (runs === 1) {
  const run = simulate(seed);
  endWith(timelineOf(run), run);
}

const { timelines, bad, faults, counts } = await runSeeds(simulate, seed, runs);
for (const timeline of timelines) console.log(timeline);
const msPerRun = (performance.now() - startedAt) / runs;

const broken = [];
for (const mutant of mutants) {
  const { simulate: simulateBroken } = await simulation('cluster', 'simulate.ts', mutant);
  const { seed: ofTest, options } = mutant;
  const others = Array.from({ length: mutantRuns }, (_, n) => ({ n: seed + n })).filter(({ n }) => n !== ofTest);
  // Some rules are needed in one run of a thousand, or with some faults only, so the run that the test uses is one of them.
  const all = [...others, { n: ofTest, options }];
  const detecting = [];
  for (const { n, options: ofRun } of all)
    if ((await violationsOf(simulateBroken, simulate, n, ofRun)).length > 0) detecting.push(n);
  broken.push({ ...mutant, bad: detecting.sort((one, other) => one - other) });
}

const { explore } = await simulation('cluster', 'explore.ts');
const searches = [
  { from: 'start', faults: 1 },
  { from: 'owner', faults: 1 },
  { from: 'owner', faults: 2 },
].map((search) => ({ ...search, ...explore({ ...search, depth: 200, maxStates, settle: 1_000 }) }));
for (const { violation } of searches) if (violation) console.log(violation);

const ofRules = brokenRules(broken, mutantRuns);
const faultCount = Object.values(faults).reduce((sum, count) => sum + count, 0);
await report({
  name: 'cluster-simulation',
  command: `npm run reliability -- cluster-simulation --runs ${runs} --seed ${seed}`,
  goals: [
    exactly('random runs with a false stop, no owner in the end, or a loss that no gap reports', bad, 0),
    ofRules.goal,
    exactly('violations in the search of every order of events', searches.filter((each) => each.violation).length, 0),
  ],
  tables: [
    { title: 'Faults', columns: ['fault', 'times'], rows: Object.entries(faults).sort() },
    ofRules.table,
    {
      title: 'Every order of events of two replicas, up to a number of states',
      columns: [
        ...['from', 'faults in a path', 'states', 'transitions', 'depth', 'continued to the end'],
        'of which the store lost the stop',
      ],
      rows: searches.map(({ from, faults, states, transitions, depth, settled, lostStops }) => [
        ...[from, faults, states, transitions, depth, settled, lostStops],
      ]),
    },
  ],
  facts: {
    runs,
    faults: faultCount,
    takeovers: counts.takeovers,
    frames: counts.frames,
    'stopped runs': counts.isStopped,
    'of which by a loss in the store that no replica can notice': counts.isUnnoticedLoss,
    'hours of virtual time': Math.round(counts.durationMs / 3_600_000),
    ...timesOf(startedAt, msPerRun),
  },
  keep: runs >= 2_000,
});
