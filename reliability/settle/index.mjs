// Runs `settle` in random worlds in virtual time, against a ledger that knows everything, and with each rule broken on purpose.
//
//   npm run reliability -- settle [--runs 10000] [--seed 1] [--mutant-runs 100]
//   npm run reliability -- settle --runs 1 --seed S      repeats one world, and prints its timeline
import { parseArgs } from 'node:util';
import { mutants } from '../../test/settle/model/mutants.mjs';
import { model, runSeeds } from '../../test/settle/model/run-seeds.mjs';
import { exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    'mutant-runs': { type: 'string', default: '100' },
  },
});
const [runs, seed, mutantRuns] = ['runs', 'seed', 'mutant-runs'].map((name) => {
  if (/^\d+$/.test(values[name])) return Number(values[name]);
  console.error(`--${name} must be a whole number.`);
  return process.exit(2);
});

const startedAt = performance.now();
const { simulate } = await model();
if (runs === 1) {
  const { violations, timeline } = simulate(seed);
  console.log([...violations, ...timeline].join('\n'));
  process.exit(violations.length > 0 ? 1 : 0);
}

const { timelines, states, ...sums } = runSeeds(simulate, seed, runs);
for (const timeline of timelines) console.log(timeline);
const msPerRun = (performance.now() - startedAt) / runs;

const broken = [];
for (const mutant of mutants) {
  const changed = await model(mutant);
  const seeds = new Set([...Array.from({ length: mutantRuns }, (_, n) => seed + n), mutant.seed]);
  broken.push({ ...mutant, bad: [...seeds].filter((n) => changed.simulate(n).violations.length > 0) });
}

await report({
  name: 'settle',
  command: `npm run reliability -- settle --runs ${runs} --seed ${seed}`,
  goals: [
    exactly('wrong outcomes, and unknown ones without a gap', sums.wrong, 0),
    exactly('rules broken on purpose that no world detects', broken.filter(({ bad }) => bad.length === 0).length, 0),
  ],
  tables: [
    { title: 'Outcomes', columns: ['outcome', 'times'], rows: Object.entries(states).sort() },
    {
      title: `Rules broken on purpose, ${mutantRuns} worlds each, and the one of its test`,
      columns: ['rule', 'bad worlds', 'first seed'],
      rows: broken.map(({ name, bad }) => [name, bad.length, bad[0] ?? '–']),
    },
  ],
  facts: {
    worlds: runs,
    trades: sums.trades,
    'outcomes, of which corrections': `${sums.outcomes}, ${sums.corrections}`,
    'ms per world, live and from two recordings': Number(msPerRun.toFixed(1)),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: runs >= 10_000,
});
