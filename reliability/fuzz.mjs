// Runs every fuzzing property with many cases and reports the result.
//
//   npm run reliability -- fuzz                       5,000 cases of each property, a new seed
//   npm run reliability -- fuzz --runs N --seed S     N cases of each property, a known seed
import { exactly, holds } from './lib/goal.mjs';
import { readOptions } from './lib/options.mjs';
import { report } from './lib/report.mjs';
import { runJest } from './lib/run-jest.mjs';

const { runs, seed } = readOptions({ runs: 5_000, seed: Date.now() % 2 ** 31 }, { least: { runs: 1 } });
const { status, seconds, written } = runJest('test/fuzz', 'FUZZ', { runs, seed });
const rows = written
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line));

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
  goals: [exactly('cases that broke a property', failures, 0), holds('every test file passed', status === 0)],
  tables: [
    {
      title: 'Properties and the outcomes of their cases',
      columns: ['property', 'cases', 'failed', 'outcomes'],
      rows: rows
        .sort((a, b) => a.property.localeCompare(b.property))
        .map((row) => [row.property, row.cases, row.failures, outcomesOf(row)]),
    },
  ],
  facts: { properties: rows.length, cases, seconds },
  keep: runs >= 1_000,
});
