// Runs many seeds of the simulation in a plain process, which is several times faster than a test with coverage. Prints the sums as JSON, and the
// timelines of the first runs with violations.
//
//   node test/cluster/programs/run-seeds.mjs 1 2000
import { bundled, runSeeds } from '../simulation/run.mjs';

const [from, count] = process.argv.slice(2).map(Number);
const { simulate } = await bundled('simulate.ts');
console.log(JSON.stringify(runSeeds(simulate, from, count)));
