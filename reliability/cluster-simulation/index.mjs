// Runs the election of a cluster in virtual time with random faults, with each rule broken on purpose, and in every order of events.
//
//   npm run reliability -- cluster-simulation [--runs 2000] [--seed 1] [--mutant-runs 600] [--states 200000]
//   npm run reliability -- cluster-simulation --runs 1 --seed S      repeats one run, and prints its timeline
import { parseArgs } from 'node:util';
import { bundled } from '../../test/cluster/simulation/bundle.mjs';
import { mutants } from '../../test/cluster/simulation/mutants.mjs';
import { exactly, holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    'mutant-runs': { type: 'string', default: '600' },
    states: { type: 'string', default: '200000' },
  },
});
const [runs, seed, mutantRuns, maxStates] = ['runs', 'seed', 'mutant-runs', 'states'].map((name) => {
  if (/^\d+$/.test(values[name])) return Number(values[name]);
  console.error(`--${name} must be a whole number.`);
  return process.exit(2);
});

const startedAt = performance.now();
const { simulate } = await bundled('simulate.ts');
const tally = { faults: {}, bad: 0, stopped: 0, takeovers: 0, frames: 0 };
for (let n = seed; n < seed + runs; n += 1) {
  const run = simulate(n);
  for (const [name, count] of Object.entries(run.faults)) tally.faults[name] = (tally.faults[name] ?? 0) + count;
  tally.stopped += Number(run.isStopped);
  tally.takeovers += run.takeovers;
  tally.frames += run.frames;
  if (run.violations.length > 0) tally.bad += 1;
  if (run.violations.length > 0 || runs === 1)
    console.log([`Seed ${n}:`, ...run.violations, ...run.timeline].join('\n'));
}
if (runs === 1) process.exit(tally.bad);

const isBad = (broken, n) => {
  try {
    return broken.simulate(n).violations.length > 0;
  } catch (error) {
    if (/callbacks/.test(error.message)) return true;
    throw error;
  }
};
const broken = [];
for (const mutant of mutants) {
  const simulation = await bundled('simulate.ts', mutant);
  let bad = 0;
  for (let n = seed; n < seed + mutantRuns; n += 1) bad += Number(isBad(simulation, n));
  broken.push({ ...mutant, bad });
}

const { explore } = await bundled('explore.ts');
const searches = [
  { from: 'start', faults: 1 },
  { from: 'owner', faults: 1 },
  { from: 'owner', faults: 2 },
].map((search) => ({ ...search, ...explore({ ...search, depth: 200, maxStates, settle: 1_000 }) }));
for (const { violation } of searches) if (violation) console.log(violation);

const faultCount = Object.values(tally.faults).reduce((sum, count) => sum + count, 0);
await report({
  name: 'cluster-simulation',
  command: `npm run reliability -- cluster-simulation --runs ${runs} --seed ${seed}`,
  goals: [
    exactly('random runs with a false stop, no owner in the end, or a loss that no gap reports', tally.bad, 0),
    holds(
      'every broken rule is detected that safety rests on',
      broken.every(({ isCaught, bad }) => bad > 0 === isCaught),
    ),
    exactly('violations in the search of every order of events', searches.filter((each) => each.violation).length, 0),
  ],
  tables: [
    { title: 'Faults', columns: ['fault', 'times'], rows: Object.entries(tally.faults).sort() },
    {
      title: `Rules broken on purpose, ${mutantRuns} runs each`,
      columns: ['rule', 'bad runs', 'must be detected'],
      rows: broken.map(({ name, bad, isCaught }) => [name, bad, isCaught ? 'yes' : 'no']),
    },
    {
      title: 'Every order of events of two replicas',
      columns: ['from', 'faults in a path', 'states', 'transitions', 'depth', 'continued to the end'],
      rows: searches.map(({ from, faults, states, transitions, depth, settled }) => [
        ...[from, faults, states, transitions, depth, settled],
      ]),
    },
  ],
  facts: {
    runs,
    faults: faultCount,
    takeovers: tally.takeovers,
    frames: tally.frames,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: runs >= 2_000,
});
