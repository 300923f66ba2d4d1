// Runs the simulation with each broken rule, with the seed that detects it, and prints those of each as JSON.
//
//   node test/cluster/programs/run-mutants.mjs
//   node test/cluster/programs/run-mutants.mjs 2000    tries seeds from 1 on, after a change of the simulation
import { mutants } from '../simulation/mutants.mjs';
import { bundled, detects } from '../simulation/run.mjs';

const count = Number(process.argv[2] ?? 0);
const { simulate } = await bundled('simulate.ts');
// Without RX_TRADE_FEED_ALL_CASES=1, which CI sets, every third rule.
const isPart = count === 0 && process.env.RX_TRADE_FEED_ALL_CASES !== '1';

const results = [];
for (const mutant of mutants.filter((_, n) => !isPart || n % 3 === 0)) {
  const { simulate: broken } = await bundled('simulate.ts', mutant);
  const seeds = count > 0 ? Array.from({ length: count }, (_, n) => n + 1) : [mutant.seed];
  results.push({ name: mutant.name, seed: seeds.find((seed) => detects(broken, simulate, seed, mutant.options)) });
}
console.log(JSON.stringify(results));
