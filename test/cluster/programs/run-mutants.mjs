// Runs the simulation with each broken rule, with the seed that detects it, and prints the seed and the violations of each as JSON.
//
//   node test/cluster/programs/run-mutants.mjs
//   node test/cluster/programs/run-mutants.mjs 2000    tries seeds from 1 on, after a change of the simulation
import { bundled } from '../simulation/bundle.mjs';
import { mutants } from '../simulation/mutants.mjs';

const count = Number(process.argv[2] ?? 0);
const seedsOf = ({ seed }) => (count > 0 ? Array.from({ length: count }, (_, n) => n + 1) : [seed]);

/** Runs seeds until one has violations. */
const detect = (simulate, seeds) => {
  for (const seed of seeds) {
    const { violations } = simulate(seed);
    if (violations.length > 0) return { seed, violations };
  }
  return { seed: undefined, violations: [] };
};

const results = [];
for (const mutant of mutants) {
  const { simulate } = await bundled('simulate.ts', mutant);
  results.push({ name: mutant.name, ...detect(simulate, seedsOf(mutant)) });
}
console.log(JSON.stringify(results));
