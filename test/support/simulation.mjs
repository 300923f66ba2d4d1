// What runs the simulations of the cluster, of connections that settle, of the log, the relay and of `settle`.
import { posix } from 'node:path';
import { bundled } from './bundle.mjs';

const { join } = posix;

// No stack traces, because they would contain the bundle as one long address.
Error.stackTraceLimit = 0;

/** Where each simulation is in `test/`. The pages of relays send their requests over the network of the simulation. */
const rooms = {
  cluster: { folder: 'cluster/simulation' },
  continuity: {
    folder: 'feed/continuity',
    replaced: { 'browser/relay-request.ts': '../../relay/simulation/network.ts' },
  },
  log: { folder: 'log/simulation' },
  relay: {
    folder: 'relay/simulation',
    replaced: { 'browser/relay-request.ts': 'network.ts' },
  },
  settle: { folder: 'settle/model' },
};
const inRoom = (room, file) => new URL(`../${rooms[room].folder}/${file}`, import.meta.url);

/**
 * Bundles a program of a simulation, and imports it.
 *
 * @param {'cluster' | 'continuity' | 'log' | 'relay' | 'settle'} room
 * @param {{ readonly file: string, readonly find: string, readonly replacement: string }} [mutant] - a rule that is broken on purpose
 * @param {string} [file] - the program
 */
export const simulation = (room, mutant, file = 'simulate.ts') => {
  const replaced = Object.entries(rooms[room].replaced ?? {}).map(([source, by]) => [source, inRoom(room, by)]);
  return bundled(inRoom(room, file), { mutant, replaced: Object.fromEntries(replaced) });
};

/** Returns the rules of a simulation that are broken on purpose. */
export const mutantsOf = async (room) => (await import(inRoom(room, 'mutants.mjs'))).mutants;

const textOf = (lines, sign) => lines.flatMap((line) => (line.startsWith(sign) ? [line.slice(1)] : [])).join('\n');

/**
 * Reads rules that are broken on purpose: `# name`, a file with a seed that detects it, the lines that are replaced with `-`, and those that
 * replace them with `+`. `faults`: what is rare is found only in a run with these faults, without a foreign client. `windows of`: how long the
 * windows are that find it.
 */
export const mutantsIn = (room, patches) =>
  patches
    .split('\n# ')
    .slice(1)
    .map((patch) => {
      const [name, place, ...lines] = patch.trimEnd().split('\n');
      const [, file, seed, windowMs, faults] = /^(.+), seed (\d+)(?:, windows of (\d+) ms)?(?:, faults: (.+))?$/.exec(
        place,
      );
      const inFaults = faults && { faultNames: faults.split(', '), foreign: 'none' };
      const options = windowMs ? { windowMs: Number(windowMs) } : inFaults;
      const change = { find: textOf(lines, '-'), replacement: textOf(lines, '+') };
      return { name, file: join(room ?? '', file), seed: Number(seed), options, ...change };
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
export const timelineOf = ({ seed, violations, timeline }) =>
  [`Seed ${seed}:`, ...violations.slice(0, 20), ...timeline].join('\n');

/** What a run counts by name: faults, kinds of violations, states of outcomes. */
const tallies = ['counts', 'faults', 'kinds', 'states'];

export const noSums = () => ({
  ...{ runs: 0, bad: 0, violations: 0, seeds: [], timelines: [] },
  ...Object.fromEntries(tallies.map((name) => [name, {}])),
});

/** Runs seeds one after the other. Returns sums of what the runs count, and the timelines of the first bad ones. */
export const runSeeds = async (simulate, from, count) => {
  const sums = noSums();
  for (let seed = from; seed < from + count; seed += 1) {
    const run = await simulate(seed);
    const isBad = run.violations.length > 0;
    const counts = Object.entries(run).filter(
      ([name, value]) => name !== 'seed' && /number|boolean/.test(typeof value),
    );
    const bad = { bad: Number(isBad), seeds: isBad ? [seed] : [], timelines: isBad ? [timelineOf(run)] : [] };
    addSums(sums, { ...run, runs: 1, ...bad, violations: run.violations.length, counts: Object.fromEntries(counts) });
  }
  return sums;
};

/** Adds the sums of other runs. */
export const addSums = (sums, other) => {
  for (const name of ['runs', 'bad', 'violations']) sums[name] += other[name];
  for (const tally of tallies)
    for (const [name, count] of Object.entries(other[tally] ?? {}))
      sums[tally][name] = (sums[tally][name] ?? 0) + Number(count);
  sums.seeds = [...sums.seeds, ...other.seeds].slice(0, 20);
  sums.timelines = [...sums.timelines, ...other.timelines].slice(0, maxTimelines);
};
