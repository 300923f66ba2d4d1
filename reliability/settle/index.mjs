// Runs `settle` in random worlds in virtual time, against a ledger that knows everything, and with each rule broken on purpose.
//
//   npm run reliability -- settle [--runs 10000] [--seed 1] [--mutant-runs 100]
//   npm run reliability -- settle --runs 1 --seed S      repeats one world, and prints its timeline
import { mutants } from '../../test/settle/model/mutants.mjs';
import { model, runSeeds } from '../../test/settle/model/run-seeds.mjs';
import { exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { breakRules, brokenRules, endWith, timesOf, wholeNumbers } from '../lib/simulation.mjs';

const { runs, seed, 'mutant-runs': mutantRuns } = wholeNumbers({ runs: 10_000, seed: 1, 'mutant-runs': 100 });

const startedAt = performance.now();
const { simulate } = await model();
if (runs === 1) {
  const run = simulate(seed);
  endWith([...run.violations, ...run.timeline].join('\n'), run);
}

const { timelines, states, ...sums } = runSeeds(simulate, seed, runs);
for (const timeline of timelines) console.log(timeline);
const msPerRun = (performance.now() - startedAt) / runs;

const broken = brokenRules(await breakRules(mutants, model, seed, mutantRuns), mutantRuns, 'world');

await report({
  name: 'settle',
  command: `npm run reliability -- settle --runs ${runs} --seed ${seed}`,
  goals: [exactly('wrong outcomes, and unknown ones without a gap', sums.wrong, 0), broken.goal],
  tables: [{ title: 'Outcomes', columns: ['outcome', 'times'], rows: Object.entries(states).sort() }, broken.table],
  facts: {
    worlds: runs,
    trades: sums.trades,
    'outcomes, of which corrections': `${sums.outcomes}, ${sums.corrections}`,
    ...timesOf(startedAt, msPerRun, 'ms per world, live and from two recordings'),
  },
  keep: runs >= 10_000,
});
