// Runs every bench there is, prints each goal beside what was measured, and fills the tables of docs/performance.md.
//
//   npm run bench                       all of them
//   npm run bench -- replay micro       these alone
//   npm run bench -- --quick            a look: three rounds, nothing is written into the guide
//   node bench/index.mjs --write        measures nothing: fills the guide from bench/results
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { fill, sectionOf, summaryOf } from './lib/fill.mjs';
import { isQuick } from './lib/options.mjs';
import { readResult } from './lib/report.mjs';
import { goalTable } from './lib/table.mjs';

const benches = ['replay', 'e2e', 'micro', 'memory', 'stall', 'reconnect', 'growth'];
const fileOf = (name) => fileURLToPath(new URL(`${name}/index.mjs`, import.meta.url));
const guide = fileURLToPath(new URL('../docs/performance.md', import.meta.url));

const options = process.argv.slice(2).filter((arg, at, all) => arg.startsWith('--') || all[at - 1] === '--rounds');
const asked = process.argv.slice(2).filter((arg) => !options.includes(arg));
const unknown = asked.filter((name) => !benches.includes(name));
if (unknown.length > 0)
  throw new RangeError(`No bench is called ${unknown.join(', ')}; there are: ${benches.join(', ')}`);

const run = (name) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ['--expose-gc', fileOf(name), ...options], { stdio: 'inherit' });
    process.once('exit', () => child.kill());
    child.once('close', (code) => resolve(code === 0 ? [] : [name]));
  });

const failed = [];
if (!options.includes('--write')) {
  for (const name of asked.length > 0 ? asked : benches) {
    if (existsSync(fileOf(name))) failed.push(...(await run(name)));
    else console.error(`${name}: there is no such bench yet`);
  }
}

const results = benches.map((name) => [name, readResult(name)]);
const measured = results.flatMap(([, result]) => result ?? []);
if (!isQuick) {
  const sections = Object.fromEntries(results.map(([name, result]) => [name, sectionOf(name, result)]));
  const filled = fill(readFileSync(guide, 'utf8'), { goals: summaryOf(measured), ...sections });
  writeFileSync(guide, await format(filled, { ...(await resolveConfig(guide)), filepath: guide }));
}

console.log(
  `# all goals\n\n${goalTable(measured.flatMap(({ goals }) => goals))}\n\n${summaryOf(measured).split('\n')[0]}`,
);
if (failed.length > 0) {
  console.error(`Did not run to the end: ${failed.join(', ')}`);
  process.exitCode = 1;
}
