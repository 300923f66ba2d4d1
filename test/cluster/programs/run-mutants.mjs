// Runs the simulation with each rule broken that has a known seed, and prints the violations of each as JSON.
//
//   node test/cluster/programs/run-mutants.mjs
import { bundled } from '../simulation/bundle.mjs';
import { mutants } from '../simulation/mutants.mjs';

const results = [];
for (const mutant of mutants) {
  if (mutant.seed === undefined) continue;
  const { simulate } = await bundled('simulate.ts', mutant);
  results.push({ name: mutant.name, violations: simulate(mutant.seed).violations });
}
console.log(JSON.stringify(results));
