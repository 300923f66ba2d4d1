import { bundled } from '../../support/bundle.mjs';

const at = (name) => new URL(name, import.meta.url);

/** Bundles the simulation, with the network of the simulation instead of `fetch`. */
export const simulation = (mutant) =>
  bundled(at('scenarios.ts'), { mutant, replaced: { 'browser/relay-request.ts': at('network.ts') } });

const maxTimelines = 3;

/** Returns the timeline of a run as text, violations first. */
export const timelineOf = ({ seed, violations, timeline }) =>
  [`Seed ${seed}:`, ...violations.slice(0, 20), ...timeline].join('\n');

/** Runs seeds one after the other. Returns sums, and the timelines of the first runs with violations. */
export const runSeeds = (simulate, from, count) => {
  const sums = { runs: count, bad: 0, frames: 0, received: 0, gaps: 0, windows: 0, completeWindows: 0, virtualMs: 0 };
  const kinds = {};
  const faults = {};
  const timelines = [];
  for (let seed = from; seed < from + count; seed += 1) {
    const run = simulate(seed);
    for (const name of ['frames', 'received', 'gaps', 'windows', 'completeWindows', 'virtualMs'])
      sums[name] += run[name];
    for (const [name, times] of Object.entries(run.faults)) faults[name] = (faults[name] ?? 0) + times;
    for (const what of run.violations) kinds[kindOf(what)] = (kinds[kindOf(what)] ?? 0) + 1;
    if (run.violations.length === 0) continue;
    sums.bad += 1;
    if (timelines.length < maxTimelines) timelines.push(timelineOf(run));
  }
  return { ...sums, faults, kinds, timelines };
};

/** The kinds of violations, which the report counts. */
export const kindOf = (what) =>
  what.includes('in no gap')
    ? 'lost frames outside gaps'
    : what.includes('says complete')
      ? 'complete windows that are wrong'
      : /frame \d+ follows \d+$/.test(what)
        ? 'frames received twice'
        : / of \d+ follows/.test(what)
          ? 'times that go back'
          : 'other';
