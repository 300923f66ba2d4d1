// Runs the simulation with each broken rule and the seed that detects it. Prints each seed and its violations as JSON.
//
//   node test/log/programs/run-mutants.mjs
//   node test/log/programs/run-mutants.mjs 300    tries seeds from 1 on, if you have changed the simulation
import { mutants } from '../simulation/mutants.mjs';
import { firstBad, simulation } from '../simulation/run-seeds.mjs';

const count = Number(process.argv[2] ?? 0);

// Runs every third rule, unless RX_TRADE_FEED_ALL_CASES=1, which CI sets.
const isPart = count === 0 && process.env.RX_TRADE_FEED_ALL_CASES !== '1';

const results = [];
for (const mutant of mutants.filter((_, n) => !isPart || n % 3 === 0)) {
  const { simulate } = await simulation(mutant);
  const seeds = count > 0 ? Array.from({ length: count }, (_, n) => n + 1) : [mutant.seed];
  results.push({ name: mutant.name, ...(await firstBad(simulate, seeds)) });
}
console.log(JSON.stringify(results, undefined, 1));
