// The report of a benchmark: tables on stdout and a JSON file.
import { isQuick, ROUNDS } from './options.mjs';
import { resultText } from './table.mjs';
import { writeResult } from './write-result.mjs';

/**
 * Prints the goals and tables of a benchmark, and writes `bench/results/<bench>.json`. That of a quick run goes to temp.
 *
 * @param bench - the name of the benchmark and of its file
 * @param rounds - how often each contender was measured
 * @param goals - rows of `goal`
 * @param tables - `{ title, columns: ['…'], rows: [[…]] }`
 * @param facts - `{ name: text or number }`, listed below the tables
 */
export const report = ({ bench, command = `npm run bench -- ${bench}`, rounds = ROUNDS, ...figures }) => {
  const result = writeResult(isQuick ? 'temp/bench/' : 'bench/results/', { name: bench, command, rounds, ...figures });
  console.log(resultText(result));
  if (isQuick) console.log('A QUICK RUN IS NOT A RESULT\n');
  return result;
};
