// Runs all benchmarks, prints each goal with its measured value, and updates the tables of docs/performance.md.
//
//   npm run bench -- all                  every benchmark
//   npm run bench -- all replay micro     these two
//   npm run bench -- all --quick          three rounds; does not change docs/performance.md
//   npm run bench -- all --write          measures nothing: updates docs/performance.md from bench/results
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { fill, sectionOf, summaryOf } from './lib/fill.mjs';
import { isQuick } from './lib/options.mjs';
import { openingText } from './lib/opening.mjs';
import { readResult } from './lib/report.mjs';
import { goalTable } from './lib/table.mjs';
import { benchmarks } from './programs.mjs';

const all = Object.keys(benchmarks);
const fileOf = (name) => fileURLToPath(new URL(`${name}/index.mjs`, import.meta.url));
const guide = fileURLToPath(new URL('../docs/performance.md', import.meta.url));

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

const results = all.map((name) => [name, readResult(name)]);
const measured = results.flatMap(([, result]) => result ?? []);
if (!isQuick) {
  const sections = Object.fromEntries(results.map(([name, result]) => [name, sectionOf(name, result)]));
  const filled = fill(readFileSync(guide, 'utf8'), {
    opening: openingText(Object.fromEntries(results)),
    goals: summaryOf(measured),
    ...sections,
  });
  writeFileSync(guide, await format(filled, { ...(await resolveConfig(guide)), filepath: guide }));
}

console.log(
  `# all goals\n\n${goalTable(measured.flatMap(({ goals }) => goals))}\n\n${summaryOf(measured).split('\n')[0]}`,
);
if (failed.length > 0) {
  console.error(`Failed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
