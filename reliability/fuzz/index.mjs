// Runs every fuzzing property with many cases and reports the result.
//
//   npm run reliability -- fuzz                       5,000 cases of each property, a new seed
//   npm run reliability -- fuzz --runs N --seed S     N cases of each property, a known seed
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { exactly, holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '5000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});
const runs = Number(options.runs);
const seed = Number(options.seed);
if (!(Number.isInteger(runs) && runs > 0 && Number.isInteger(seed))) {
  console.error('--runs must be a whole number, 1 or more, and --seed a whole number.');
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-fuzz-'));
const lines = join(folder, 'rows');
writeFileSync(lines, '');
const jest = ['--disable-warning=ExperimentalWarning', '--experimental-vm-modules', 'node_modules/jest/bin/jest.js'];
const startedMs = performance.now();
const child = spawn(process.execPath, [...jest, 'test/fuzz'], {
  stdio: 'inherit',
  env: { ...process.env, FUZZ_RUNS: String(runs), FUZZ_SEED: String(seed), FUZZ_REPORT: lines },
});
const [code] = await once(child, 'close');
const rows = readFileSync(lines, 'utf8')
  .trim()
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line));
rmSync(folder, { recursive: true });

const cases = rows.reduce((sum, row) => sum + row.cases, 0);
const failures = rows.reduce((sum, row) => sum + row.failures, 0);
const outcomesOf = ({ outcomes = {} }) =>
  Object.entries(outcomes)
    .sort(([, a], [, b]) => b - a)
    .map(([outcome, times]) => `${outcome} ${times}`)
    .join(', ');
await report({
  name: 'fuzz',
  command: `npm run reliability -- fuzz --runs ${runs} --seed ${seed}`,
  // A test file that fails to load reports no failed case, so check the exit code as well.
  goals: [exactly('cases that broke a property', failures, 0), holds('every test file passed', code === 0)],
  tables: [
    {
      title: 'Properties and the outcomes of their cases',
      columns: ['property', 'cases', 'failed', 'outcomes'],
      rows: rows
        .sort((a, b) => a.property.localeCompare(b.property))
        .map((row) => [row.property, row.cases, row.failures, outcomesOf(row)]),
    },
  ],
  facts: { properties: rows.length, cases, seconds: Math.round((performance.now() - startedMs) / 1_000) },
  keep: runs >= 1_000,
});
process.exitCode = code === 0 ? process.exitCode : 1;
