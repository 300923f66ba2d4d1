// Runs all benchmarks, prints each goal with its measured value, and updates docs/performance.md and the tables in docs/performance.
//
//   npm run bench -- all                  every benchmark
//   npm run bench -- all replay micro     these two
//   npm run bench -- all --quick          three rounds; changes no page
//   npm run bench -- all --write          measures nothing: updates the pages from bench/results
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { summaryOf } from './lib/fill.mjs';
import { isQuick } from './lib/options.mjs';
import { writePages } from './lib/pages.mjs';
import { folders } from './lib/report.mjs';
import { goalTable } from './lib/table.mjs';
import { performancePages, readResults } from './lib/update-docs.mjs';
import { benchmarks } from './programs.mjs';

const all = Object.keys(benchmarks);
const fileOf = (name) => fileURLToPath(new URL(`${name}/index.mjs`, import.meta.url));

const options = process.argv.slice(2).filter((arg, at, args) => arg.startsWith('--') || args[at - 1] === '--rounds');
const selected = process.argv.slice(2).filter((arg) => !options.includes(arg));
const unknown = selected.filter((name) => !all.includes(name));
if (unknown.length > 0)
  throw new RangeError(`Unknown benchmark: ${unknown.join(', ')}. The benchmarks are ${all.join(', ')}.`);

const run = (name) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ['--expose-gc', fileOf(name), ...options], { stdio: 'inherit' });
    process.once('exit', () => child.kill());
    child.once('close', (code) => resolve(code === 0 ? [] : [name]));
  });

const failed = [];
if (!options.includes('--write'))
  for (const name of selected.length > 0 ? selected : all) failed.push(...(await run(name)));

const results = readResults(folders);
const measured = Object.values(results).filter(Boolean);
if (!isQuick) await writePages(performancePages(results));

console.log(
  `# all goals\n\n${goalTable(measured.flatMap(({ goals }) => goals))}\n\n${summaryOf(measured).split('\n')[0]}`,
);
if (failed.length > 0) {
  console.error(`Failed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
