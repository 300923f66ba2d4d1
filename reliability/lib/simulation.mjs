// What the programs share that run random worlds in virtual time: their options, the repeated run, and the rules that are broken on purpose.
import { parseArgs } from 'node:util';
import { exactly } from './goal.mjs';

/** Reads options that are whole numbers, by name with their defaults. Exits with 2 if one isn't. */
export const wholeNumbers = (defaults) => {
  const options = Object.entries(defaults).map(([name, value]) => [name, { type: 'string', default: String(value) }]);
  const { values } = parseArgs({ options: Object.fromEntries(options) });
  for (const [name, value] of Object.entries(values))
    if (!/^\d+$/.test(value)) {
      console.error(`--${name} must be a whole number.`);
      process.exit(2);
    }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Number(value)]));
};

/** Prints the timeline of a run, and exits: with 1 if it is bad. */
export const endWith = (text, { violations }) => {
  console.log(text);
  process.exit(violations.length > 0 ? 1 : 0);
};

/**
 * Runs some seeds, and the one of its test, with each rule broken on purpose.
 *
 * @param load - returns the simulation with a mutant
 */
export const breakRules = async (mutants, load, seed, runs) => {
  const broken = [];
  for (const mutant of mutants) {
    const { simulate } = await load(mutant);
    const seeds = new Set([...Array.from({ length: runs }, (_, n) => seed + n), mutant.seed]);
    broken.push({ ...mutant, bad: [...seeds].filter((n) => simulate(n).violations.length > 0) });
  }
  return broken;
};

/** Returns the goal and the table of the broken rules. `what` is what a run is called. */
export const brokenRules = (broken, runs, what = 'run') => ({
  goal: exactly(
    `rules broken on purpose that no ${what} detects`,
    broken.filter(({ bad }) => bad.length === 0).length,
    0,
  ),
  table: {
    title: `Rules broken on purpose, ${runs} ${what}s each, and the one of its test`,
    columns: ['rule', `bad ${what}s`, 'first seed'],
    rows: broken.map(({ name, bad }) => [name, bad.length, bad[0] ?? '–']),
  },
});

/** Returns the facts about the time that runs took since `startedAt`. */
export const timesOf = (startedAt, msPerRun, what = 'ms per run') => ({
  [what]: Number(msPerRun.toFixed(1)),
  seconds: Math.round((performance.now() - startedAt) / 1_000),
});
