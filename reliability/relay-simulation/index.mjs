// Runs relays, relays behind relays and pages in virtual time with random faults, and with each rule broken on purpose.
//
//   npm run reliability -- relay-simulation [--runs 2000] [--seed 1] [--mutant-runs 100]
//   npm run reliability -- relay-simulation --runs 1 --seed S      repeats one run, and prints its timeline
import { parseArgs } from 'node:util';
import { mutants } from '../../test/relay/simulation/mutants.mjs';
import { runSeeds, simulation, timelineOf } from '../../test/relay/simulation/run-seeds.mjs';
import { exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
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
const { simulate } = await simulation();
if (runs === 1) {
  const run = simulate(seed);
  console.log(timelineOf(run));
  process.exit(run.violations.length > 0 ? 1 : 0);
}

const { timelines, faults, kinds, ...sums } = runSeeds(simulate, seed, runs);
for (const timeline of timelines) console.log(timeline);
const msPerRun = (performance.now() - startedAt) / runs;

const broken = [];
for (const mutant of mutants) {
  const changed = await simulation(mutant);
  const seeds = new Set([...Array.from({ length: mutantRuns }, (_, n) => seed + n), mutant.seed]);
  broken.push({ ...mutant, bad: [...seeds].filter((n) => changed.simulate(n).violations.length > 0) });
}

await report({
  name: 'relay-simulation',
  command: `npm run reliability -- relay-simulation --runs ${runs} --seed ${seed}`,
  goals: [
    ...[
      ...['lost frames outside gaps', 'complete windows that are wrong', 'frames received twice'],
      ...['times that go back', 'other'],
    ].map((kind) => exactly(kind === 'other' ? 'pages that receive no frames in the end' : kind, kinds[kind] ?? 0, 0)),
    exactly('rules broken on purpose that no run detects', broken.filter(({ bad }) => bad.length === 0).length, 0),
  ],
  tables: [
    { title: 'Faults', columns: ['fault', 'times'], rows: Object.entries(faults).sort() },
    {
      title: `Rules broken on purpose, ${mutantRuns} runs each, and the one of its test`,
      columns: ['rule', 'bad runs', 'first seed'],
      rows: broken.map(({ name, bad }) => [name, bad.length, bad[0] ?? '–']),
    },
  ],
  facts: {
    runs,
    'frames sent by the service': sums.frames,
    'frames received by two pages': sums.received,
    gaps: sums.gaps,
    'windows, of which complete': `${sums.windows}, ${sums.completeWindows}`,
    'hours of virtual time': Math.round(sums.virtualMs / 3_600_000),
    'ms per run': Number(msPerRun.toFixed(1)),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: runs >= 2_000,
});
