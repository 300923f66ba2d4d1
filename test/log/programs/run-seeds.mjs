// Runs many seeds of the simulation in a plain process. Prints sums and the timelines of the first bad runs as JSON.
//
//   node test/log/programs/run-seeds.mjs 1 200
import { runSeeds, simulation } from '../simulation/run-seeds.mjs';

const [from, count] = process.argv.slice(2).map(Number);
const { simulate } = await simulation();
console.log(JSON.stringify(await runSeeds(simulate, from, count)));
