import { bundled } from '../../support/bundle.mjs';

// No stack traces, because they would contain the bundle as one long address.
Error.stackTraceLimit = 0;

/** Bundles the simulation, if needed with a rule broken on purpose. */
export const simulation = (mutant) => bundled(new URL('simulate.ts', import.meta.url), { mutant });

const maxTimelines = 3;

export const timelineOf = ({ seed, violations, timeline }) => [`Seed ${seed}:`, ...violations, ...timeline].join('\n');

/** Runs seeds one after the other. Returns sums, and the timelines of the first bad runs. */
export const runSeeds = async (simulate, from, count) => {
  const sums = noSums();
  for (let seed = from; seed < from + count; seed += 1) {
    const run = await simulate(seed);
    const isBad = run.violations.length > 0;
    const bad = { bad: Number(isBad), seeds: isBad ? [seed] : [], timelines: isBad ? [timelineOf(run)] : [] };
    addSums(sums, { ...run, ...bad, runs: 1 });
  }
  return sums;
};

export const noSums = () => ({
  ...{ runs: 0, bad: 0, frames: 0, received: 0, gaps: 0, virtualMs: 0 },
  ...{ faults: {}, seeds: [], timelines: [] },
});

/** Adds the sums of other runs. */
export const addSums = (sums, other) => {
  for (const name of ['runs', 'bad', 'frames', 'received', 'gaps', 'virtualMs']) sums[name] += other[name];
  for (const [name, times] of Object.entries(other.faults)) sums.faults[name] = (sums.faults[name] ?? 0) + times;
  sums.seeds = [...sums.seeds, ...other.seeds].slice(0, 20);
  sums.timelines = [...sums.timelines, ...other.timelines].slice(0, maxTimelines);
};

/** Returns the first seed with violations, and its first violation. A broken rule may also throw. */
export const firstBad = async (simulate, seeds) => {
  for (const seed of seeds) {
    const violations = await simulate(seed).then(
      (run) => run.violations,
      (error) => [String(error)],
    );
    if (violations.length > 0) return { seed, violations: violations.slice(0, 3) };
  }
  return { seed: undefined, violations: [] };
};
