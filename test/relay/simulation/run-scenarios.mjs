// Runs the scenarios in a plain process, where the network of the simulation replaces `fetch`. Prints the results as JSON.
import { simulation } from '../../support/simulation.mjs';

const { moves, restarts, stalls } = await simulation('relay');
console.log(JSON.stringify({ moves: moves(), restarts: restarts(), stalls: stalls() }));
