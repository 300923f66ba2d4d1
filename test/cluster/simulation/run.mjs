import { bundled as bundledProgram } from '../../support/bundle.mjs';

/**
 * Bundles a program of this folder, and imports it.
 *
 * @param {string} file - its name
 * @param {{ readonly file: string, readonly find: string, readonly replacement: string }} [mutant] - a change of one file in `src/cluster/`
 */
export const bundled = (file, mutant) =>
  bundledProgram(new URL(file, import.meta.url), mutant && { mutant: { ...mutant, file: `cluster/${mutant.file}` } });

/** Returns whether a broken rule makes a run bad, or endless. A run that's bad anyway detects nothing. */
export const detects = (broken, simulate, seed, options) => {
  try {
    if (broken(seed, options).violations.length === 0) return false;
  } catch (error) {
    if (!/callbacks/.test(error.message)) throw error;
  }
  return simulate(seed, options).violations.length === 0;
};

const maxTimelines = 3;

/** Returns the timeline of a run as text, violations first. */
export const timelineOf = ({ seed, violations, timeline }) => [`Seed ${seed}:`, ...violations, ...timeline].join('\n');

/** Runs seeds one after the other. Returns sums, and the timelines of the first runs with violations. */
export const runSeeds = (simulate, from, count) => {
  const sums = {
    runs: count,
    bad: 0,
    stopped: 0,
    unnoticedLosses: 0,
    takeovers: 0,
    frames: 0,
    virtualMs: 0,
    faults: {},
  };
  const timelines = [];
  for (let seed = from; seed < from + count; seed += 1) {
    const run = simulate(seed);
    for (const [name, times] of Object.entries(run.faults)) sums.faults[name] = (sums.faults[name] ?? 0) + times;
    sums.stopped += Number(run.isStopped);
    sums.unnoticedLosses += Number(run.isUnnoticedLoss);
    sums.takeovers += run.takeovers;
    sums.frames += run.frames;
    sums.virtualMs += run.durationMs;
    if (run.violations.length === 0) continue;
    sums.bad += 1;
    if (timelines.length < maxTimelines) timelines.push(timelineOf(run));
  }
  return { ...sums, timelines };
};
