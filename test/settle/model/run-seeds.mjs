// Runs seeds in a plain process, several times faster than a test with coverage. Prints sums as JSON.
//
//   node test/settle/model/run-seeds.mjs 1 200
import { fileURLToPath } from 'node:url';
import { bundled } from '../../support/bundle.mjs';

/** Bundles the model, if needed with a rule broken on purpose. */
export const model = (mutant) => bundled(new URL('simulate.ts', import.meta.url), { mutant });

/** Runs seeds one after the other. Returns sums, and the timelines of the first bad runs. */
export const runSeeds = (simulate, from, count) => {
  const sums = { runs: count, bad: 0, wrong: 0, trades: 0, outcomes: 0, corrections: 0 };
  const states = {};
  const timelines = [];
  for (let seed = from; seed < from + count; seed += 1) {
    const run = simulate(seed);
    for (const name of ['trades', 'outcomes', 'corrections']) sums[name] += run[name];
    for (const [state, times] of Object.entries(run.states)) states[state] = (states[state] ?? 0) + times;
    if (run.violations.length === 0) continue;
    sums.bad += 1;
    sums.wrong += run.violations.length;
    if (timelines.length < 3)
      timelines.push([`Seed ${seed}:`, ...run.violations.slice(0, 20), ...run.timeline].join('\n'));
  }
  return { ...sums, states, timelines };
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [from, count] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(runSeeds((await model()).simulate, from, count)));
}
