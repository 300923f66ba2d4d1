// Runs the simulation with each rule broken, and prints the number of bad runs of each as JSON.
//
//   node test/cluster/programs/run-mutants.mjs FROM COUNT [first]
//
// With `first` it ends a mutant at the first bad run.
import { bundled } from '../simulation/bundle.mjs';
import { mutants } from '../simulation/mutants.mjs';

const [from, count] = process.argv.slice(2, 4).map(Number);
const isFirstEnough = process.argv[4] === 'first';

const isBad = (simulate, seed) => {
  try {
    return simulate(seed).violations.length > 0;
  } catch (error) {
    // A broken rule can cause a loop without a wait.
    if (/callbacks/.test(error.message)) return true;
    throw error;
  }
};

const results = [];
for (const mutant of mutants) {
  const { simulate } = await bundled('simulate.ts', mutant);
  let bad = 0;
  let runs = 0;
  for (let seed = from; seed < from + count && !(isFirstEnough && mutant.isCaught && bad > 0); seed += 1) {
    runs += 1;
    if (isBad(simulate, seed)) bad += 1;
  }
  results.push({ name: mutant.name, isCaught: mutant.isCaught, runs, bad });
}
console.log(JSON.stringify(results));
