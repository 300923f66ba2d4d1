// Runs a simulation in a plain process, which is several times faster than a test with coverage. Prints JSON: the sums of seeds, and the
// timelines of the first bad ones; or for each rule that is broken on purpose the seed that detects it, and its violations. ROOM
// is cluster, continuity, log, relay or settle.
//
//   node test/support/run-simulation.mjs ROOM seeds 1 2000
//   node test/support/run-simulation.mjs ROOM mutants
//   node test/support/run-simulation.mjs ROOM mutants 2000     then tries seeds from 1 on, after a change of the simulation
import { mutantsOf, runSeeds, simulation, violationsOf } from './simulation.mjs';

const [room, what, ...numbers] = process.argv.slice(2);
const [first = 0, count] = numbers.map(Number);
const { simulate } = await simulation(room);

const detect = async (mutant) => {
  const { simulate: broken } = await simulation(room, mutant);
  const seeds = [mutant.seed, ...Array.from({ length: first }, (_, n) => n + 1)];
  for (const seed of seeds) {
    const violations = await violationsOf(broken, simulate, seed, mutant.options);
    if (violations.length > 0) return { name: mutant.name, seed, violations: violations.slice(0, 3) };
  }
  return { name: mutant.name, violations: [] };
};

if (what === 'seeds') console.log(JSON.stringify(await runSeeds(simulate, first, count)));
else {
  const results = [];
  for (const mutant of await mutantsOf(room)) results.push(await detect(mutant));
  console.log(JSON.stringify(results, undefined, 1));
}
