// Runs relays, relays behind relays and pages in virtual time with random faults, and with each rule broken on purpose.
//
//   npm run reliability -- relay-simulation [--runs 2000] [--seed 1] [--mutant-runs 100]
//   npm run reliability -- relay-simulation --runs 1 --seed S      repeats one run, and prints its timeline
import { mutants } from '../../test/relay/simulation/mutants.mjs';
import { runSeeds, simulation, timelineOf } from '../../test/relay/simulation/run-seeds.mjs';
import { exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { breakRules, brokenRules, endWith, timesOf, wholeNumbers } from '../lib/simulation.mjs';

const { runs, seed, 'mutant-runs': mutantRuns } = wholeNumbers({ runs: 2_000, seed: 1, 'mutant-runs': 100 });

const startedAt = performance.now();
const { simulate } = await simulation();
if (runs === 1) {
  const run = simulate(seed);
  endWith(timelineOf(run), run);
}

const { timelines, faults, kinds, ...sums } = runSeeds(simulate, seed, runs);
for (const timeline of timelines) console.log(timeline);
const msPerRun = (performance.now() - startedAt) / runs;

const broken = brokenRules(await breakRules(mutants, simulation, seed, mutantRuns), mutantRuns);

await report({
  name: 'relay-simulation',
  command: `npm run reliability -- relay-simulation --runs ${runs} --seed ${seed}`,
  goals: [
    ...[
      ...['lost frames outside gaps', 'complete windows that are wrong', 'frames received twice'],
      ...['times that go back', 'other'],
    ].map((kind) => exactly(kind === 'other' ? 'pages that receive no frames in the end' : kind, kinds[kind] ?? 0, 0)),
    broken.goal,
  ],
  tables: [{ title: 'Faults', columns: ['fault', 'times'], rows: Object.entries(faults).sort() }, broken.table],
  facts: {
    runs,
    'frames sent by the service': sums.frames,
    'frames received by two pages': sums.received,
    gaps: sums.gaps,
    'windows, of which complete': `${sums.windows}, ${sums.completeWindows}`,
    'hours of virtual time': Math.round(sums.virtualMs / 3_600_000),
    ...timesOf(startedAt, msPerRun),
  },
  keep: runs >= 2_000,
});
