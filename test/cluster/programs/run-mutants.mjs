// Runs the simulation with each broken rule that one of the first seeds detects, and prints the violations of each as JSON.
//
//   node test/cluster/programs/run-mutants.mjs
import { bundled } from '../simulation/bundle.mjs';
import { mutants } from '../simulation/mutants.mjs';

const seeds = 40;

const firstViolations = (simulate) => {
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { violations } = simulate(seed);
    if (violations.length > 0) return violations;
  }
  return [];
};

const results = [];
for (const mutant of mutants) {
  if (!mutant.isFast) continue;
  const { simulate } = await bundled('simulate.ts', mutant);
  results.push({ name: mutant.name, violations: firstViolations(simulate) });
}
console.log(JSON.stringify(results));
