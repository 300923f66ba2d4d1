// Runs the model with each broken rule and the seed that detects it. Prints the violations as JSON.
//
//   node test/settle/model/run-mutants.mjs
//   node test/settle/model/run-mutants.mjs 500    tries seeds from 1 on, if you have changed the model
import { mutants } from './mutants.mjs';
import { model } from './run-seeds.mjs';

const count = Number(process.argv[2] ?? 0);

const results = [];
for (const mutant of mutants) {
  const { simulate } = await model(mutant);
  const seeds = count > 0 ? Array.from({ length: count }, (_, n) => n + 1) : [mutant.seed];
  const seed = seeds.find((each) => simulate(each).violations.length > 0);
  const violations = seed === undefined ? [] : simulate(seed).violations;
  results.push({ name: mutant.name, seed, violations: violations.slice(0, 3) });
}
console.log(JSON.stringify(results, undefined, 1));
