// Runs the simulation with each broken rule, with the seed that detects it, and prints the seed and the violations of each as JSON. A seed that
// has violations without the broken rule detects nothing.
//
//   node test/cluster/programs/run-mutants.mjs
//   node test/cluster/programs/run-mutants.mjs 2000    tries seeds from 1 on, after a change of the simulation
import { bundled } from '../simulation/bundle.mjs';
import { mutants } from '../simulation/mutants.mjs';

const count = Number(process.argv[2] ?? 0);
const seedsOf = ({ seed }) => (count > 0 ? Array.from({ length: count }, (_, n) => n + 1) : [seed]);

const { simulate: simulateUnbroken } = await bundled('simulate.ts');

/** Runs seeds until one has violations. */
const detect = (simulate, seeds, options) => {
  for (const seed of seeds) {
    const { violations } = simulate(seed, options);
    if (violations.length > 0 && simulateUnbroken(seed, options).violations.length === 0) return { seed, violations };
  }
  return { seed: undefined, violations: [] };
};

// Without RX_TRADE_FEED_ALL_CASES=1, which CI sets, every third rule.
const isPart = count === 0 && process.env.RX_TRADE_FEED_ALL_CASES !== '1';

const results = [];
for (const mutant of mutants.filter((_, n) => !isPart || n % 3 === 0)) {
  const { simulate } = await bundled('simulate.ts', mutant);
  results.push({ name: mutant.name, ...detect(simulate, seedsOf(mutant), mutant.options) });
}
console.log(JSON.stringify(results));
