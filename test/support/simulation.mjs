// What runs the simulations of the cluster and of the log.
import { bundled } from './bundle.mjs';

// No stack traces, because they would contain the bundle as one long address.
Error.stackTraceLimit = 0;

/**
 * Bundles a program of a simulation, and imports it.
 *
 * @param {'cluster' | 'log'} room
 * @param {string} [file] - the program
 * @param {{ readonly file: string, readonly find: string, readonly replacement: string }} [mutant] - a rule that is broken on purpose
 */
export const simulation = (room, file = 'simulate.ts', mutant = undefined) =>
  bundled(new URL(`../${room}/simulation/${file}`, import.meta.url), { mutant });

const textOf = (lines, sign) => lines.flatMap((line) => (line.startsWith(sign) ? [line.slice(1)] : [])).join('\n');

/**
 * Reads rules that are broken on purpose: `# name`, a file with a seed that detects it, the lines that are replaced with `-`, and those that
 * replace them with `+`. `faults`: what is rare is found only in a run with these faults, without a foreign client.
 */
export const mutantsIn = (room, patches) =>
  patches
    .split('\n# ')
    .slice(1)
    .map((patch) => {
      const [name, place, ...lines] = patch.trimEnd().split('\n');
      const [, file, seed, faults] = /^(.+), seed (\d+)(?:, faults: (.+))?$/.exec(place);
      const options = faults && { faultNames: faults.split(', '), foreign: 'none' };
      const change = { find: textOf(lines, '-'), replacement: textOf(lines, '+') };
      return { name, file: `${room}/${file}`, seed: Number(seed), options, ...change };
    });

/** Returns what a broken rule makes wrong in a run that is right without it. It may also throw. */
export const violationsOf = async (broken, simulate, seed, options) => {
  let violations;
  try {
    ({ violations } = await broken(seed, options));
  } catch (error) {
    violations = [String(error)];
  }
  if (violations.length === 0) return [];
  return (await simulate(seed, options)).violations.length === 0 ? violations : [];
};

const maxTimelines = 3;

/** Returns the timeline of a run as text, violations first. */
export const timelineOf = ({ seed, violations, timeline }) => [`Seed ${seed}:`, ...violations, ...timeline].join('\n');

export const noSums = () => ({ runs: 0, bad: 0, counts: {}, faults: {}, seeds: [], timelines: [] });

/** Runs seeds one after the other. Returns sums of what the runs count, and the timelines of the first bad ones. */
export const runSeeds = async (simulate, from, count) => {
  const sums = noSums();
  for (let seed = from; seed < from + count; seed += 1) {
    const { faults, ...run } = await simulate(seed);
    const isBad = run.violations.length > 0;
    const counts = Object.entries(run).filter(
      ([name, value]) => name !== 'seed' && Number.isFinite(Number(value)) && !Array.isArray(value),
    );
    const bad = { bad: Number(isBad), seeds: isBad ? [seed] : [], timelines: isBad ? [timelineOf(run)] : [] };
    addSums(sums, { runs: 1, ...bad, faults, counts: Object.fromEntries(counts) });
  }
  return sums;
};

/** Adds the sums of other runs. */
export const addSums = (sums, other) => {
  sums.runs += other.runs;
  sums.bad += other.bad;
  for (const kind of ['counts', 'faults'])
    for (const [name, count] of Object.entries(other[kind])) sums[kind][name] = (sums[kind][name] ?? 0) + Number(count);
  sums.seeds = [...sums.seeds, ...other.seeds].slice(0, 20);
  sums.timelines = [...sums.timelines, ...other.timelines].slice(0, maxTimelines);
};
