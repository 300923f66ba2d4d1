// Runs one benchmark. Without a name it lists them.
//
//   npm run bench
//   npm run bench -- replay --rounds 15
import { runProgram } from '../scripts/run-program.mjs';
import { programs } from './programs.mjs';

runProgram('bench', programs);
