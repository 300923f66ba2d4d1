// Runs a simulation in virtual time with random faults, and with each rule broken on purpose.
//
//   npm run reliability -- relay-simulation [--runs 2000] [--seed 1] [--mutant-runs 100] [--threads 2]
//   npm run reliability -- relay-simulation --runs 1 --seed S      repeats one run, and prints its timeline
import { addSums, mutantsOf, noSums, simulation, timelineOf, violationsOf } from '../../test/support/simulation.mjs';
import { exactly, report } from '../lib/report.mjs';
import { readOptions } from '../lib/options.mjs';
import { runInThreads } from '../lib/threads.mjs';
import { simulations } from './simulations.mjs';

/** How many runs a thread takes at a time. */
const BLOCK = 100;
const faults = { name: 'faults', title: 'Faults', columns: ['fault', 'times'] };
const [name, ...args] = process.argv.slice(2);
const { room, word = 'run', options: defaults, tally = faults, ...texts } = simulations[name];
const options = readOptions({ ...defaults, seed: 1, threads: 2 }, { least: { runs: 1, threads: 1 }, args });
const { runs, seed, 'mutant-runs': mutantRuns, threads } = options;

const startedAt = performance.now();
const { simulate } = await simulation(room);
if (runs === 1) {
  const run = await simulate(seed);
  console.log(timelineOf(run));
  process.exit(run.violations.length > 0 ? 1 : 0);
}

const blocks = Array.from({ length: Math.ceil(runs / BLOCK) }, (_, n) => ({
  from: seed + n * BLOCK,
  count: Math.min(BLOCK, runs - n * BLOCK),
}));
const sums = noSums();
for (const block of await runInThreads(room, blocks, threads)) addSums(sums, block);
for (const timeline of sums.timelines) console.log(timeline);
const msPerRun = (performance.now() - startedAt) / runs;

/** Returns a row about a broken rule: how many runs detect it, and what the first one finds. One of them is the run of the rule's test. */
const detect = async (mutant) => {
  const { simulate: broken } = await simulation(room, mutant);
  const found = new Map();
  // Some rules are needed in one run of a thousand, or with some faults only.
  for (const each of new Set([mutant.seed, ...Array.from({ length: mutantRuns }, (_, n) => seed + n)])) {
    const options = each === mutant.seed ? mutant.options : undefined;
    const [what] = await violationsOf(broken, simulate, each, options);
    if (what !== undefined) found.set(each, what);
  }
  const first = Math.min(...found.keys());
  // Without the filling of the payloads.
  const what = found
    .get(first)
    ?.replaceAll(/,"pad":"x*"?/g, '')
    .slice(0, 80);
  return [mutant.name, found.size, ...(found.size === 0 ? ['–', '–'] : [first, what])];
};
const broken = [];
for (const mutant of await mutantsOf(room)) broken.push(await detect(mutant));
const ofRules = {
  title: `Rules broken on purpose, ${mutantRuns} ${word}s each, and the one of its test`,
  columns: ['rule', `bad ${word}s`, 'first seed', 'what it finds'],
  rows: broken,
};
const undetected = broken.filter(([, times]) => times === 0).length;
const more = await texts.search?.(options);

report({
  name,
  command: `npm run reliability -- ${name} --runs ${runs} --seed ${seed}`,
  goals: [
    ...texts.goals(sums),
    exactly(`rules broken on purpose that no ${word} detects`, undetected, 0),
    ...(more?.goals ?? []),
  ],
  tables: [
    { title: tally.title, columns: tally.columns, rows: Object.entries(sums[tally.name]).sort() },
    ofRules,
    ...(more?.tables ?? []),
  ],
  facts: {
    [`${word}s`]: runs,
    ...(sums.bad > 0 && { 'bad seeds': sums.seeds.join(', ') }),
    ...texts.facts(sums),
    threads,
    'ms per run': Number(msPerRun.toFixed(1)),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: runs >= defaults.runs,
});
