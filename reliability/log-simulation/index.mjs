// Runs the writers, readers and a consumer of a log in virtual time with random faults, and with each rule broken on purpose.
//
//   npm run reliability -- log-simulation [--runs 2000] [--seed 1] [--mutant-runs 150] [--threads 2]
//   npm run reliability -- log-simulation --runs 1 --seed S      repeats one run, and prints its timeline
import { mutants } from '../../test/log/simulation/mutants.mjs';
import { simulation, timelineOf, violationsOf } from '../../test/support/simulation.mjs';
import { exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { endWith, timesOf, wholeNumbers } from '../lib/simulation.mjs';
import { runInThreads } from './threads.mjs';

const options = wholeNumbers({ runs: 2_000, seed: 1, 'mutant-runs': 150, threads: 2 });
const { runs, seed, 'mutant-runs': mutantRuns, threads } = options;

const startedAt = performance.now();
if (runs === 1) {
  const { simulate } = await simulation('log');
  const run = await simulate(seed);
  endWith(timelineOf(run), run);
}

const { timelines, seeds, bad, faults, counts } = await runInThreads(seed, runs, Math.max(1, threads));
for (const timeline of timelines) console.log(timeline);
if (seeds.length > 0) console.log(`Bad seeds: ${seeds.join(', ')}`);
const msPerRun = (performance.now() - startedAt) / runs;

const { simulate } = await simulation('log');
const detect = async (mutant) => {
  const { simulate: changed } = await simulation('log', 'simulate.ts', mutant);
  for (const each of [mutant.seed, ...Array.from({ length: mutantRuns }, (_, n) => seed + n)]) {
    const violations = await violationsOf(changed, simulate, each);
    if (violations.length > 0) return { ...mutant, seed: each, violations };
  }
  return { ...mutant, violations: [] };
};
const broken = [];
for (const mutant of mutants) broken.push(await detect(mutant));

// Without the filling of the payloads, so that the table fits a phone.
const whatIsFound = ({ violations: [first = '–'] }) => first.replaceAll(/,"pad":"x*"?/g, '').slice(0, 80);

await report({
  name: 'log-simulation',
  command: `npm run reliability -- log-simulation --runs ${runs} --seed ${seed}`,
  goals: [
    exactly('runs in which a record is lost, repeated or changed, or a consumer skips one', bad, 0),
    exactly(
      'rules broken on purpose that no run detects',
      broken.filter((each) => each.violations.length === 0).length,
      0,
    ),
  ],
  tables: [
    { title: 'Faults', columns: ['fault', 'times'], rows: Object.entries(faults).sort() },
    {
      title: 'Rules broken on purpose',
      columns: ['rule', 'seed', 'what is found'],
      rows: broken.map((each) => [each.name, each.violations.length > 0 ? each.seed : '–', whatIsFound(each)]),
    },
  ],
  facts: {
    runs,
    'frames sent': counts.frames,
    'frames received': counts.received,
    gaps: counts.gaps,
    'hours of virtual time': Math.round(counts.virtualMs / 3_600_000),
    threads,
    ...timesOf(startedAt, msPerRun),
  },
  keep: runs >= 2_000,
});
