// Runs the scenarios of the simulation in a plain process, and prints what the page has received in each as JSON.
//
//   node test/relay/programs/run-scenarios.mjs
import { simulation } from '../simulation/run-seeds.mjs';

const { moves, restarts, stalls } = await simulation(undefined, 'scenarios.ts');
console.log(JSON.stringify({ moves: moves(), restarts: restarts(), stalls: stalls() }));
