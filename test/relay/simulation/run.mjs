// Runs the scenarios, many seeds, and each broken rule with the seed that detects it, in a plain process: several times
// faster than jest with coverage. Prints the results as JSON.
//
//   node test/relay/simulation/run.mjs 200         seeds 1 to 200
//   node test/relay/simulation/run.mjs 0 2000      tries seeds from 1 on for each rule, after a change of the simulation
import { mutants } from './mutants.mjs';
import { runSeeds, simulation } from './run-seeds.mjs';

const [count = 0, tries = 0] = process.argv.slice(2).map(Number);
const { simulate, moves, restarts, stalls } = await simulation();
const scenarios = { moves: moves(), restarts: restarts(), stalls: stalls() };
const sums = runSeeds(simulate, 1, count);

// Without RX_TRADE_FEED_ALL_CASES=1, which CI sets, every third rule.
const isPart = tries === 0 && process.env.RX_TRADE_FEED_ALL_CASES !== '1';
const rules = [];
for (const mutant of mutants.filter((_, n) => !isPart || n % 3 === 0)) {
  const broken = await simulation(mutant);
  const seeds = tries > 0 ? Array.from({ length: tries }, (_, n) => n + 1) : [mutant.seed];
  const seed = seeds.find((each) => broken.simulate(each).violations.length > 0);
  rules.push({ name: mutant.name, seed });
}
console.log(JSON.stringify({ scenarios, sums, rules }, undefined, 1));
