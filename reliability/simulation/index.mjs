// Runs a simulation in virtual time with random faults, and with each rule broken on purpose.
//
//   npm run reliability -- relay-simulation [--runs 2000] [--seed 1] [--mutant-runs 100] [--threads 2]
//   npm run reliability -- relay-simulation --runs 1 --seed S      repeats one run, and prints its timeline
import { mutantsOf, simulation, timelineOf, violationsOf } from '../../test/support/simulation.mjs';
import { exactly } from '../lib/goal.mjs';
import { readOptions } from '../lib/options.mjs';
import { report } from '../lib/report.mjs';
import { simulations } from './simulations.mjs';
import { runInThreads } from './threads.mjs';

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

const sums = await runInThreads(room, seed, runs, threads);
for (const timeline of sums.timelines) console.log(timeline);
if (sums.bad > 0) console.log(`Bad seeds: ${sums.seeds.join(', ')}`);
const msPerRun = (performance.now() - startedAt) / runs;

/** Returns the seeds that detect a broken rule, and what the first one finds. One of them is the run of the rule's test. */
const detect = async (mutant) => {
  const { simulate: broken } = await simulation(room, mutant);
  const others = Array.from({ length: mutantRuns }, (_, n) => ({ each: seed + n }));
  const ofTest = { each: mutant.seed, ofRun: mutant.options };
  const detecting = [];
  // Some rules are needed in one run of a thousand, or with some faults only.
  for (const { each, ofRun } of [ofTest, ...others.filter(({ each }) => each !== mutant.seed)]) {
    const violations = await violationsOf(broken, simulate, each, ofRun);
    if (violations.length > 0) detecting.push({ each, what: violations[0] });
    if (texts.isFirstEnough && detecting.length > 0) break;
  }
  const [first = { each: '–', what: '–' }] = detecting.toSorted((one, other) => one.each - other.each);
  return { name: mutant.name, times: detecting.length, first: first.each, what: first.what };
};
const broken = [];
for (const mutant of await mutantsOf(room)) broken.push(await detect(mutant));

// Without the filling of the payloads, so that the table fits a phone.
const shortened = (what) => what.replaceAll(/,"pad":"x*"?/g, '').slice(0, 80);
const ofRules = texts.isFirstEnough
  ? {
      title: 'Rules broken on purpose',
      columns: ['rule', 'seed', 'what is found'],
      rows: broken.map(({ name: rule, first, what }) => [rule, first, shortened(what)]),
    }
  : {
      title: `Rules broken on purpose, ${mutantRuns} ${word}s each, and the one of its test`,
      columns: ['rule', `bad ${word}s`, 'first seed'],
      rows: broken.map(({ name: rule, times, first }) => [rule, times, first]),
    };
const undetected = broken.filter(({ times }) => times === 0).length;
const more = await texts.search?.(options);

await report({
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
    ...texts.facts(sums),
    threads,
    [texts.msPerRun ?? 'ms per run']: Number(msPerRun.toFixed(1)),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: runs >= defaults.runs,
});
